//! The JSON value of this project: integers only, objects with unique sorted keys, no floats.
//! Invariant: a `Value` read by `strict` or `canonical` satisfies JSON-1, JSON-3, JSON-5 and JSON-6; code that builds one by hand keeps to safe integers.
//! Called by everything that carries material it does not interpret.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The members of an object. Sorted by Unicode scalar value here; canonical bytes sort by UTF-16 code unit.
pub type Object = BTreeMap<String, Value>;

/// A JSON value over the restricted number domain (JSON-6).
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer within +-(2^53 - 1).
    Int(i64),
    /// A string of Unicode scalar values.
    String(String),
    /// An ordered list.
    Array(Vec<Value>),
    /// Members with unique keys.
    Object(Object),
}

impl Value {
    /// The member of an object; `None` for an absent member and for any other kind of value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object().and_then(|members| members.get(key))
    }

    /// The value at an RFC 6901 pointer; `None` where the pointer is malformed or leads nowhere.
    ///
    /// ```
    /// let value = aiws::object! { "a": aiws::object! { "b/c": 7 } };
    /// assert_eq!(value.pointer("/a/b~1c").and_then(|found| found.as_int()), Some(7));
    /// ```
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut place = self;
        for token in pointer.strip_prefix('/')?.split('/') {
            let token = token.replace("~1", "/").replace("~0", "~");
            place = match place {
                Value::Object(members) => members.get(&token)?,
                Value::Array(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(place)
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number of an integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The truth of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The items of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// What kind of value this is, for messages: `null`, `a boolean`, `an integer`, `a string`, `an array`, `an object`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }
}

/// Says what kind of value it is and how much of it there is, never what it says: values carry material (HS-07.7).
/// `Display` writes the canonical text.
impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.write_str("null"),
            Value::Bool(truth) => write!(out, "{truth}"),
            Value::Int(_) => out.write_str("<an integer>"),
            Value::String(text) => write!(out, "<a string of {} bytes>", text.len()),
            Value::Array(items) => write!(out, "<an array of {}>", items.len()),
            Value::Object(members) => write!(out, "<an object of {}>", members.len()),
        }
    }
}

/// Builds an object [`Value`] from literal keys and anything that converts into a value.
///
/// ```
/// let value = aiws::object! { "name": "a", "count": 2, "open": true };
/// assert_eq!(value.to_string(), r#"{"count":2,"name":"a","open":true}"#);
/// ```
#[macro_export]
macro_rules! object {
    ($($key:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut members = $crate::json::Object::new();
        $(members.insert(($key).to_string(), $crate::json::Value::from($value));)*
        $crate::json::Value::Object(members)
    }};
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(i64::from(number))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

impl From<Object> for Value {
    fn from(members: Object) -> Value {
        Value::Object(members)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// The canonical text (CJ-1).
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::canonical::write_text(self, out)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items
                    .iter()
                    .try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members
                    .iter()
                    .try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

/// Refuses duplicate keys, floats, unsafe integers and nesting beyond the bound, whatever the format.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        crate::strict::visit(deserializer)
    }
}
