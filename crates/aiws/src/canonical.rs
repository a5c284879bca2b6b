//! Canonical bytes (CJ-1) and the way between typed records and values.
//! Invariant: one serializer for every hash: keys in UTF-16 code unit order, no whitespace, shortest escapes, plain integers.
//! Called wherever material is hashed, stored or read into a record.

use std::fmt::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::de::ValueReader;
use crate::digest::{Digest, sha256};
use crate::error::Error;
use crate::json::{Object, Value};
use crate::limits::{MAX_DEPTH, MAX_SAFE_INTEGER};
use crate::pointer::Pointer;

/// The canonical bytes of a value, in UTF-8.
///
/// ```
/// let value = aiws::strict::parse(br#" { "b" : 1, "a" : "\u0041\n" } "#)?;
/// assert_eq!(aiws::canonical::to_bytes(&value), br#"{"a":"A\n","b":1}"#);
/// # Ok::<(), aiws::error::Error>(())
/// ```
pub fn to_bytes(value: &Value) -> Vec<u8> {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write_text(value, &mut text);
    text.into_bytes()
}

/// The value of anything serializable.
///
/// # Errors
/// `SCHEMA_INVALID` with a pointer where it holds a float, an integer beyond the safe range, or nests too deep.
pub fn to_value<T: Serialize + ?Sized>(record: &T) -> Result<Value, Error> {
    let value =
        serde_json::to_value(record).map_err(|cause| Error::schema("", cause.to_string()))?;
    from_serde(value, &mut Pointer::default(), 0)
}

/// Reads a closed record from a value.
///
/// # Errors
/// `SCHEMA_INVALID` with a pointer to the place that does not fit: an unknown or missing member, a wrong kind, a
/// text out of its bounds.
///
/// ```
/// use aiws::record::Ref;
/// let value = aiws::object! { "id": "p", "revision": "01" };
/// let refused = aiws::canonical::from_value::<Ref>(&value).unwrap_err();
/// assert_eq!(refused.pointer.as_deref(), Some("/revision"));
/// ```
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(ValueReader::new(value)).map_err(|failed| {
        let mut pointer = Pointer::default();
        for segment in failed.path() {
            match segment {
                serde_path_to_error::Segment::Seq { index } => pointer.push_index(*index),
                serde_path_to_error::Segment::Map { key } => pointer.push_key(key),
                serde_path_to_error::Segment::Enum { .. }
                | serde_path_to_error::Segment::Unknown => {}
            }
        }
        failed.into_inner().into_error(pointer)
    })
}

/// As [`from_value`], for a value that is itself part of a larger document at `prefix`.
///
/// # Errors
/// As for [`from_value`], with the pointer below `prefix`.
pub fn from_value_at<T: DeserializeOwned>(value: &Value, prefix: &str) -> Result<T, Error> {
    from_value(value).map_err(|error| error.under(prefix))
}

/// The canonical bytes of anything serializable.
///
/// # Errors
/// As for [`to_value`].
pub fn bytes_of<T: Serialize + ?Sized>(record: &T) -> Result<Vec<u8>, Error> {
    to_value(record).map(|value| to_bytes(&value))
}

/// SHA-256 of the canonical bytes of anything serializable (CJ-2).
///
/// # Errors
/// As for [`to_value`].
pub fn digest_of<T: Serialize + ?Sized>(record: &T) -> Result<Digest, Error> {
    bytes_of(record).map(|bytes| sha256(&bytes))
}

/// Writes the canonical text; nesting is bounded by [`MAX_DEPTH`], so recursion is safe.
pub(crate) fn write_text(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(truth) => out.write_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => write!(out, "{number}"),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.write_char(',')?;
                }
                write_text(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => write_object(members, out),
    }
}

fn write_object(members: &Object, out: &mut impl Write) -> fmt::Result {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    // The map is in scalar order already. UTF-16 order differs from it only where a surrogate pair (D800..DFFF) meets
    // the range E000..FFFF, so ASCII keys, by far the most, need no second sort.
    if sorted.iter().any(|(key, _)| !key.is_ascii()) {
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    }
    out.write_char('{')?;
    for (index, (key, member)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_string(key, out)?;
        out.write_char(':')?;
        write_text(member, out)?;
    }
    out.write_char('}')
}

fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Every byte of a multi-byte character is 0x80 or more, so `at` is a character boundary here.
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.write_str(&text[plain..at])?;
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            0x08 => out.write_str("\\b")?,
            0x09 => out.write_str("\\t")?,
            0x0a => out.write_str("\\n")?,
            0x0c => out.write_str("\\f")?,
            0x0d => out.write_str("\\r")?,
            other => write!(out, "\\u{other:04x}")?,
        }
        plain = at + 1;
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

fn from_serde(value: serde_json::Value, place: &mut Pointer, depth: usize) -> Result<Value, Error> {
    let deeper = |place: &Pointer| match depth < MAX_DEPTH {
        true => Ok(depth + 1),
        false => Err(Error::schema(
            place.as_str(),
            format!("expected at most {MAX_DEPTH} levels of nesting"),
        )),
    };
    Ok(match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(truth),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) if number.unsigned_abs() <= MAX_SAFE_INTEGER.unsigned_abs() => {
                Value::Int(number)
            }
            _ => {
                return Err(Error::schema(
                    place.as_str(),
                    format!("expected a safe integer, found {number}"),
                ));
            }
        },
        serde_json::Value::String(text) => Value::String(text),
        serde_json::Value::Array(items) => {
            let depth = deeper(place)?;
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.into_iter().enumerate() {
                place.push_index(index);
                list.push(from_serde(item, place, depth)?);
                place.pop();
            }
            Value::Array(list)
        }
        serde_json::Value::Object(members) => {
            let depth = deeper(place)?;
            let mut object = Object::new();
            for (key, member) in members {
                place.push_key(&key);
                let member = from_serde(member, place, depth)?;
                place.pop();
                object.insert(key, member);
            }
            Value::Object(object)
        }
    })
}

/// The value in serde_json's own type, for the schema validator.
pub(crate) fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => serde_json::Value::Bool(*truth),
        Value::Int(number) => serde_json::Value::from(*number),
        Value::String(text) => serde_json::Value::String(text.clone()),
        Value::Array(items) => items.iter().map(to_serde).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.clone(), to_serde(member)))
            .collect(),
    }
}
