//! RFC 6901 pointers, built while walking down into a value.
//! Invariant: the text is always a valid pointer; `push` and `pop` are exact inverses.
//! Called by `strict`, `canonical` and `schema` to say where something is wrong.

/// A pointer under construction; the empty pointer is the whole document.
///
/// ```
/// let mut pointer = aiws::pointer::Pointer::default();
/// pointer.push_key("a/b");
/// pointer.push_index(3);
/// assert_eq!(pointer.as_str(), "/a~1b/3");
/// pointer.pop();
/// assert_eq!(pointer.as_str(), "/a~1b");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pointer(String);

impl Pointer {
    /// Steps into a member; `~` and `/` in the key are escaped.
    pub fn push_key(&mut self, key: &str) {
        self.0.push('/');
        // Nearly every key has nothing to escape, and a pointer steps into every member of what is read.
        if !key.contains(['~', '/']) {
            return self.0.push_str(key);
        }
        for char in key.chars() {
            match char {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
    }

    /// Steps into an item.
    pub fn push_index(&mut self, index: usize) {
        self.0.push('/');
        self.0.push_str(&index.to_string());
    }

    /// Steps out again; at the root nothing happens.
    pub fn pop(&mut self) {
        let end = self.0.rfind('/').unwrap_or(0);
        self.0.truncate(end);
    }

    /// The pointer's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
