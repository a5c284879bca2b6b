//! Debug forms that say how much there is and never what it says: free text, material, output, values of variables.
//! Invariant: no content of a veiled member is in the Debug form of its record; every member is named there (HS-07.7).
//! Called by every crate that keeps content in a record; a rule of `tests/src/tidy` finds the records that do not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What stands where content would: how much was withheld.
pub struct Veiled(pub usize);

impl fmt::Debug for Veiled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<{} bytes>", self.0)
    }
}

/// Something that a record holds and its Debug form does not show.
pub trait Content {
    /// How many bytes it has.
    fn extent(&self) -> usize;
}

impl Content for str {
    fn extent(&self) -> usize {
        self.len()
    }
}

impl Content for String {
    fn extent(&self) -> usize {
        self.len()
    }
}

impl Content for [u8] {
    fn extent(&self) -> usize {
        self.len()
    }
}

impl Content for Vec<u8> {
    fn extent(&self) -> usize {
        self.len()
    }
}

impl Content for Vec<String> {
    fn extent(&self) -> usize {
        self.iter().map(String::len).sum()
    }
}

impl Content for BTreeMap<String, String> {
    fn extent(&self) -> usize {
        self.values().map(String::len).sum()
    }
}

impl<T: Content> Content for Option<T> {
    fn extent(&self) -> usize {
        self.as_ref().map_or(0, Content::extent)
    }
}

impl<T: Content + ?Sized> Content for Arc<T> {
    fn extent(&self) -> usize {
        (**self).extent()
    }
}

impl<T: Content + ?Sized> Content for &T {
    fn extent(&self) -> usize {
        (**self).extent()
    }
}

/// The Debug form of a record with content: the members in braces as they are, the others veiled. Every member is named
/// in one of the two, or it does not build.
///
/// ```
/// struct Note {
///     id: u32,
///     text: String,
/// }
/// aiws::veiled! { Note { id } text; }
///
/// let note = Note { id: 7, text: "hush".to_owned() };
/// assert_eq!(format!("{note:?}"), "Note { id: 7, text: <4 bytes> }");
/// ```
#[macro_export]
macro_rules! veiled {
    ($($name:ident $(<$life:lifetime>)? { $($field:ident)* } $($hidden:ident)+ ;)*) => {$(
        impl $(<$life>)? ::std::fmt::Debug for $name $(<$life>)? {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let Self { $($field,)* $($hidden,)+ } = self;
                out.debug_struct(stringify!($name))
                    $(.field(stringify!($field), $field))*
                    $(.field(stringify!($hidden), &$crate::veil::Veiled($crate::veil::Content::extent($hidden))))+
                    .finish()
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves HS-07.7: text, bytes in any spelling and values of variables are not in a Debug form, and a record
    /// whose Debug form is derived shows them, so that the difference can be seen.
    #[test]
    fn content_is_measured_and_not_shown() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "only its Debug form is looked at")]
        struct Open {
            text: String,
        }
        struct Kept {
            id: u8,
            text: Option<String>,
            bytes: Arc<[u8]>,
            values: BTreeMap<String, String>,
        }
        veiled! { Kept { id } text bytes values; }
        let word = "canary".to_owned();
        let open = format!("{:?}", Open { text: word.clone() });
        assert!(open.contains(&word));
        let kept = Kept {
            id: 1,
            bytes: Arc::from(word.as_bytes()),
            values: BTreeMap::from([("NAME".to_owned(), word.clone())]),
            text: Some(word),
        };
        let expected = "Kept { id: 1, text: <6 bytes>, bytes: <6 bytes>, values: <6 bytes> }";
        assert_eq!(format!("{kept:?}"), expected);
    }
}
