//! Masking: values of secret variables never reach a transcript or a tail.
//!
//! Invariant: a value is masked wherever the borders of two reads cut it; what was not masked is never written. Only the
//! very bytes are found, not what a command made of them. Called by `process` and by the shim.

use crate::limits::MASK_MIN_BYTES;

/// Words in the name of a variable that say that its value is secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "AUTH",
];

/// Whether a variable of this name is taken for a secret although nobody said so.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The values that are masked, longest first, each with what stands in its place.
#[derive(Clone, Default)]
pub struct Mask(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    name: String,
    value: Vec<u8>,
}

impl Mask {
    /// The values of these variables; one that is shorter than [`MASK_MIN_BYTES`] would be found everywhere and is
    /// left out.
    pub fn new(values: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut secrets: Vec<Secret> = values
            .into_iter()
            .filter(|(_, value)| value.len() >= MASK_MIN_BYTES)
            .map(|(name, value)| Secret { name, value })
            .collect();
        secrets.sort_by(|a, b| (b.value.len(), &a.name).cmp(&(a.value.len(), &b.name)));
        Self(secrets)
    }

    /// The name of the first variable whose value stands in these bytes.
    pub fn found_in(&self, bytes: &[u8]) -> Option<&str> {
        let holds = |secret: &&Secret| {
            bytes
                .windows(secret.value.len())
                .any(|part| part == secret.value)
        };
        self.0.iter().find(holds).map(|secret| secret.name.as_str())
    }

    /// A stream to be masked.
    pub(crate) fn stream(&self) -> Masked<'_> {
        Masked {
            mask: self,
            held: Vec::new(),
        }
    }
}

/// A stream that is masked as it comes.
pub(crate) struct Masked<'a> {
    mask: &'a Mask,
    /// What may be the beginning of a value.
    held: Vec<u8>,
}

impl Masked<'_> {
    /// What can be written now.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.take(false)
    }

    /// What is left at the end of the stream.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.take(true)
    }

    fn take(&mut self, last: bool) -> Vec<u8> {
        let secrets = &self.mask.0;
        let mut clean = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while let Some(left) = self.held.get(at..).filter(|left| !left.is_empty()) {
            let begins =
                |secret: &Secret| secret.value.len() > left.len() && secret.value.starts_with(left);
            if !last && secrets.iter().any(begins) {
                break;
            }
            match secrets
                .iter()
                .find(|secret| left.starts_with(&secret.value))
            {
                Some(secret) => {
                    clean.extend_from_slice(format!("[masked {}]", secret.name).as_bytes());
                    at += secret.value.len();
                }
                None => {
                    clean.extend(left.first());
                    at += 1;
                }
            }
        }
        self.held.drain(..at);
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[(&str, &str)]) -> Mask {
        Mask::new(
            values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())),
        )
    }

    /// Whatever the borders of the reads are, the masked stream is the same.
    #[test]
    fn a_value_is_masked_across_every_border() {
        let mask = mask(&[
            ("A", "s3cr3t"),
            ("LONG", "s3cr3t-and-more"),
            ("SHORT", "ab"),
        ]);
        let text = b"ab s3cr3s3cr3t, s3cr3t-and-more. s3cr3t-and-mor s3cr3";
        let wanted = "ab s3cr3[masked A], [masked LONG]. [masked A]-and-mor s3cr3";
        for size in 1..=text.len() {
            let mut stream = mask.stream();
            let mut clean: Vec<u8> = text
                .chunks(size)
                .flat_map(|part| stream.feed(part))
                .collect();
            clean.extend(stream.rest());
            assert_eq!(String::from_utf8(clean).unwrap(), wanted, "{size}");
        }
        assert_eq!(mask.found_in(text), Some("LONG"));
        assert_eq!(mask.found_in(b"s3cr3 ab"), None);
    }

    #[test]
    fn names_say_what_is_secret() {
        for name in ["MY_API_KEY", "github_token", "DB_PASSWORD", "X_AUTH"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "EDITOR"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
