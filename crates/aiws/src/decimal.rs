//! Canonical unsigned decimals: amounts, revisions, generations, sizes and times of the wire (NUM-1..3, FV-CON.4).
//! Invariant: 1 to 100 digits, no sign, no leading zero, no fraction; arithmetic is checked and never wraps.
//! Called by every record; `U64` is the form inside stored records, where a value beyond u64 cannot occur.

use std::fmt;
use std::str::FromStr;

use ruint::Uint;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::error::{Error, beginning};
use crate::json::Value;
use crate::limits::MAX_DECIMAL_DIGITS;

/// 384 bits hold 115 digits, so a sum of two decimals of 100 digits is exact before its bound is checked.
type Wide = Uint<384, 6>;

/// A canonical unsigned decimal of 1 to 100 digits.
///
/// ```
/// use aiws::decimal::Dec;
/// let sum = Dec::from_u64(2).checked_add("40".parse()?);
/// assert_eq!(sum, Some(Dec::from_u64(42)));
/// assert!("042".parse::<Dec>().is_err());
/// # Ok::<(), aiws::error::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dec(Wide);

impl Dec {
    /// Zero.
    pub const ZERO: Dec = Dec(Wide::ZERO);

    /// The largest decimal: 100 nines (NUM-2).
    pub fn max() -> Dec {
        Dec(Wide::from(10u64).pow(Wide::from(MAX_DECIMAL_DIGITS)) - Wide::from(1u64))
    }

    /// A decimal from a machine integer.
    pub fn from_u64(number: u64) -> Dec {
        Dec(Wide::from(number))
    }

    /// The machine integer, or `None` beyond its range (T-57).
    pub fn to_u64(self) -> Option<u64> {
        u64::try_from(self.0).ok()
    }

    /// The sum, or `None` where it would need more than 100 digits (NUM-2).
    pub fn checked_add(self, other: Dec) -> Option<Dec> {
        self.0
            .checked_add(other.0)
            .map(Dec)
            .filter(|sum| *sum <= Dec::max())
    }

    /// The difference, or `None` where it would be negative.
    pub fn checked_sub(self, other: Dec) -> Option<Dec> {
        self.0.checked_sub(other.0).map(Dec)
    }

    /// Whether this is zero.
    pub fn is_zero(self) -> bool {
        self == Dec::ZERO
    }
}

impl FromStr for Dec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Dec, Error> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let canonical =
            digits && text.len() <= MAX_DECIMAL_DIGITS && (text == "0" || !text.starts_with('0'));
        let number = canonical
            .then(|| Wide::from_str_radix(text, 10).ok())
            .flatten();
        number.map(Dec).ok_or_else(|| {
            let found = beginning(text);
            Error::schema("", format!("expected a whole number of 1 to {MAX_DECIMAL_DIGITS} digits without sign or leading zero, found {found:?}"))
        })
    }
}

impl fmt::Display for Dec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl fmt::Debug for Dec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Dec({self})")
    }
}

/// A positive decimal: generations, leases, attempt limits (NUM-3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DecPlus(Dec);

impl DecPlus {
    /// One.
    pub fn one() -> DecPlus {
        DecPlus(Dec::from_u64(1))
    }

    /// The decimal, unless it is zero.
    ///
    /// # Errors
    /// `SCHEMA_INVALID` for zero.
    pub fn new(number: Dec) -> Result<DecPlus, Error> {
        if number.is_zero() {
            return Err(Error::schema(
                "",
                "expected a positive whole number, found \"0\"",
            ));
        }
        Ok(DecPlus(number))
    }

    /// The decimal.
    pub fn get(self) -> Dec {
        self.0
    }

    /// The machine integer, or `None` beyond its range.
    pub fn to_u64(self) -> Option<u64> {
        self.0.to_u64()
    }
}

impl FromStr for DecPlus {
    type Err = Error;

    fn from_str(text: &str) -> Result<DecPlus, Error> {
        DecPlus::new(text.parse()?)
    }
}

impl fmt::Display for DecPlus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// A point in time in UTC milliseconds of the Unix epoch, as the wire writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ms(pub Dec);

impl Ms {
    /// A time from a machine integer.
    pub fn from_u64(at_ms: u64) -> Ms {
        Ms(Dec::from_u64(at_ms))
    }

    /// The machine integer, or `None` for a time beyond its range.
    pub fn to_u64(self) -> Option<u64> {
        self.0.to_u64()
    }

    /// Whether `now_ms` is at or after this time; a time beyond u64 is never reached.
    pub fn reached(self, now_ms: u64) -> bool {
        Dec::from_u64(now_ms) >= self.0
    }
}

impl FromStr for Ms {
    type Err = Error;

    fn from_str(text: &str) -> Result<Ms, Error> {
        text.parse().map(Ms)
    }
}

impl fmt::Display for Ms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// A machine integer that is written as a canonical decimal string: stored revisions, epochs, times and sizes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct U64(pub u64);

impl U64 {
    /// The integer.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for U64 {
    fn from(number: u64) -> U64 {
        U64(number)
    }
}

impl From<U64> for u64 {
    fn from(number: U64) -> u64 {
        number.0
    }
}

impl From<U64> for Dec {
    fn from(number: U64) -> Dec {
        Dec::from_u64(number.0)
    }
}

impl FromStr for U64 {
    type Err = Error;

    fn from_str(text: &str) -> Result<U64, Error> {
        let number: Dec = text.parse()?;
        number.to_u64().map(U64).ok_or_else(|| {
            Error::schema(
                "",
                format!(
                    "expected a whole number of at most {}, found {number}",
                    u64::MAX
                ),
            )
        })
    }
}

impl fmt::Display for U64 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

macro_rules! decimal_string {
    ($($name:ident)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(|error: Error| D::Error::custom(error.message))
            }
        }

        impl From<$name> for Value {
            fn from(number: $name) -> Value {
                Value::String(number.to_string())
            }
        }
    )*};
}

decimal_string! { Dec DecPlus Ms U64 }
