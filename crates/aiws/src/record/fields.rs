//! How members of records are read where their type alone does not say enough.
//! Invariant: an optional member is absent or a value, never `null`; a nullable member is always present; lists and texts are bounded.
//! Called by the derives of closed records here and in other crates, through `deserialize_with`.
//!
//! ```
//! use aiws::record::fields;
//!
//! #[derive(Debug, serde::Deserialize)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields)]
//! struct Note {
//!     #[serde(deserialize_with = "fields::some_text")]
//!     reason: String,
//!     #[serde(deserialize_with = "fields::nullable")]
//!     decision_ref: Option<aiws::id::Id>,
//! }
//!
//! let value = aiws::object! { "reason": "", "decisionRef": aiws::json::Value::Null };
//! let refused = aiws::canonical::from_value::<Note>(&value).unwrap_err();
//! assert_eq!(refused.pointer.as_deref(), Some("/reason"));
//! ```

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::de::nested;
use crate::decimal::U64;
use crate::error::Error;
use crate::json::Value;
use crate::limits::{MAX_ID_SCALARS, MAX_LIST_ITEMS, MAX_TEXT_SCALARS};

/// An optional member that is present: its value, where `null` is none.
pub fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A nullable member. Going through `deserialize_with` makes serde refuse a record without it.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::<T>::deserialize(deserializer)
}

/// Free text; may be empty.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(String::deserialize(deserializer)?, 0, MAX_TEXT_SCALARS).map_err(D::Error::custom)
}

/// A reason or a code that says something.
pub fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(String::deserialize(deserializer)?, 1, MAX_TEXT_SCALARS).map_err(D::Error::custom)
}

/// A short name.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    bounded(String::deserialize(deserializer)?, 1, MAX_ID_SCALARS).map_err(D::Error::custom)
}

/// A list of free texts.
pub fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts: Vec<String> = list(deserializer)?;
    each(texts, |text| bounded(text, 0, MAX_TEXT_SCALARS))
}

/// A bounded list.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::<T>::deserialize(deserializer)?;
    if items.len() > MAX_LIST_ITEMS {
        return Err(D::Error::custom(format_args!(
            "expected at most {MAX_LIST_ITEMS} items, found {}",
            items.len()
        )));
    }
    Ok(items)
}

/// A bounded list that is not empty.
pub fn some_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<T> = list(deserializer)?;
    if items.is_empty() {
        return Err(D::Error::custom("expected at least one item, found none"));
    }
    Ok(items)
}

/// A bounded list whose items are all different, in any order.
pub fn unique<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    let items: Vec<T> = list(deserializer)?;
    let mut seen = std::collections::BTreeSet::new();
    match items.iter().position(|item| !seen.insert(item)) {
        Some(index) => Err(nested(Error::schema(
            format!("/{index}"),
            "expected different items, found one again",
        ))),
        None => Ok(items),
    }
}

/// As [`unique`], and not empty.
pub fn some_unique<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    let items: Vec<T> = unique(deserializer)?;
    if items.is_empty() {
        return Err(D::Error::custom("expected at least one item, found none"));
    }
    Ok(items)
}

/// A literal finite set: names in ascending order of their scalar values, each once (FV-GRT.2).
pub fn set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = each(list(deserializer)?, |text| bounded(text, 1, MAX_ID_SCALARS))?;
    match names.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(index) => {
            let message = "expected names in ascending order, each once, found one that is not above the one before it";
            Err(nested(Error::schema(format!("/{}", index + 1), message)))
        }
        None => Ok(names),
    }
}

/// As [`set`], for an optional member.
pub fn optional_set<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    set(deserializer).map(Some)
}

/// A generation (NUM-3).
pub fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<U64, D::Error> {
    let number = U64::deserialize(deserializer)?;
    if number.0 == 0 {
        return Err(D::Error::custom(
            "expected a positive whole number, found \"0\"",
        ));
    }
    Ok(number)
}

/// A JSON object.
pub fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(members) => Ok(Value::Object(members)),
        other => Err(D::Error::custom(format_args!(
            "expected an object, found {}",
            other.kind()
        ))),
    }
}

/// As [`object`], for an optional member.
pub fn optional_object<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    object(deserializer).map(Some)
}

fn bounded(text: String, least: usize, most: usize) -> Result<String, String> {
    let scalars = text.chars().count();
    if scalars < least || scalars > most {
        return Err(format!(
            "expected {least} to {most} Unicode scalar values, found {scalars}"
        ));
    }
    Ok(text)
}

fn each<E: serde::de::Error>(
    texts: Vec<String>,
    check: impl Fn(String) -> Result<String, String>,
) -> Result<Vec<String>, E> {
    let checked = texts.into_iter().enumerate().map(|(index, text)| {
        check(text).map_err(|message| nested(Error::schema(format!("/{index}"), message)))
    });
    checked.collect()
}
