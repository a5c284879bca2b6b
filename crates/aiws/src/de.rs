//! Reads typed records out of a `Value`, keeping the place of a failure.
//! Invariant: a failure in a nested document (a member whose shape depends on another) points to the innermost place.
//! Called by `canonical::from_value` and by records that read one member by the value of another.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::{Error, beginning};
use crate::json::Value;
use crate::pointer::Pointer;

/// Starts a failure text that carries a pointer below the place where serde noticed it; see [`nested`].
const MARK: char = '\u{1}';

/// Why a value is not the record that was asked for.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl Failed {
    /// The protocol error at `pointer`, or below it where the failure came from a nested document.
    pub(crate) fn into_error(self, pointer: Pointer) -> Error {
        let marked = self
            .0
            .strip_prefix(MARK)
            .and_then(|rest| rest.split_once(MARK));
        match marked {
            Some((inner, message)) => {
                Error::schema(format!("{}{inner}", pointer.as_str()), message)
            }
            None => Error::schema(pointer.as_str(), self.0),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl de::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Failed {
        Failed(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Failed {
        Failed(format!(
            "invalid type: {}, expected {expected}",
            named(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Failed {
        Failed(format!(
            "invalid value: {}, expected {expected}",
            named(found)
        ))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Failed {
        let (found, known) = (beginning(found), one_of(expected));
        Failed(format!("unknown variant `{found}`, expected {known}"))
    }

    fn unknown_field(found: &str, expected: &'static [&'static str]) -> Failed {
        let (found, known) = (beginning(found), one_of(expected));
        Failed(format!("unknown field `{found}`, expected {known}"))
    }
}

/// The names of a closed set, as serde lists them.
fn one_of(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => format!("`{one}`"),
        [one, other] => format!("`{one}` or `{other}`"),
        more => format!("one of `{}`", more.join("`, `")),
    }
}

/// What was found, with no more of a text than tells a mistake: it may be a secret in the wrong place (HD-02.10).
fn named(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("string {:?}", beginning(text)),
        other => other.to_string(),
    }
}

/// Turns the refusal of a nested document into any serde error without losing its pointer. serde errors carry only
/// text, so the pointer travels in front of it; a pointer cannot hold the mark unescaped by accident because
/// [`Failed::into_error`] looks for it only at the very start, where no other message begins with it.
pub(crate) fn nested<E: de::Error>(error: Error) -> E {
    let pointer = error.pointer.unwrap_or_default().replace(MARK, "\u{fffd}");
    E::custom(format_args!("{MARK}{pointer}{MARK}{}", error.message))
}

/// A deserializer over a borrowed value.
#[derive(Clone, Copy)]
pub(crate) struct ValueReader<'a>(&'a Value);

impl<'a> ValueReader<'a> {
    pub(crate) fn new(value: &'a Value) -> ValueReader<'a> {
        ValueReader(value)
    }
}

impl<'de> IntoDeserializer<'de, Failed> for ValueReader<'de> {
    type Deserializer = ValueReader<'de>;

    fn into_deserializer(self) -> ValueReader<'de> {
        self
    }
}

impl<'de> Deserializer<'de> for ValueReader<'de> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut list = SeqDeserializer::new(items.iter().map(ValueReader));
                let read = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(read)
            }
            Value::Object(members) => {
                let mut map = MapDeserializer::new(
                    members
                        .iter()
                        .map(|(key, value)| (key.as_str(), ValueReader(value))),
                );
                let read = visitor.visit_map(&mut map)?;
                map.end()?;
                Ok(read)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    /// Records are objects; the array form that serde would also accept is not one of ours.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(de::Error::custom(format_args!(
                "expected an object, found {}",
                other.kind()
            ))),
        }
    }

    /// An enum is its name, or an object of one member whose key is the name.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Object(members) => match members.iter().next() {
                Some((name, content)) if members.len() == 1 => {
                    visitor.visit_enum(Variant { name, content })
                }
                _ => Err(de::Error::custom(
                    "expected a known name, or an object with one known name as its only member",
                )),
            },
            other => Err(de::Error::custom(format_args!(
                "expected one of the known names, found {}",
                other.kind()
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// A variant with content: `{name: content}`.
struct Variant<'a> {
    name: &'a str,
    content: &'a Value,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failed;
    type Variant = ValueReader<'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, ValueReader<'de>), Failed> {
        Ok((
            seed.deserialize(self.name.into_deserializer())?,
            ValueReader(self.content),
        ))
    }
}

impl<'de> VariantAccess<'de> for ValueReader<'de> {
    type Error = Failed;

    /// A name without content is written as a string alone, so that no value has two spellings.
    fn unit_variant(self) -> Result<(), Failed> {
        Err(de::Error::custom("expected the name alone, as a string"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failed> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.deserialize_struct("", names, visitor)
    }
}
