//! The bytes of a simulated file, in pages that images share.
//!
//! Invariant: a page that two images share never changes; a write puts a new one in its place. So a copy of an image
//! costs nothing, and a page is hashed once, however many states of the disk hold it. Part of the disk.

use std::sync::{Arc, LazyLock, OnceLock};

use aiws::digest::{Digest, Hasher, sha256};

/// Bytes of a page; also what the storage engine takes for one, so that its writes become pages as they are.
const PAGE_BYTES: usize = 4096;

/// The page of a hole.
static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Page::of(vec![0; PAGE_BYTES]));

#[derive(Debug)]
struct Page {
    bytes: Vec<u8>,
    digest: OnceLock<Digest>,
}

impl Page {
    fn of(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            digest: OnceLock::new(),
        })
    }

    fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| sha256(&self.bytes))
    }
}

/// What a file holds. Behind its end its last page is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    len: usize,
    pages: Arc<Vec<Arc<Page>>>,
    digest: OnceLock<Digest>,
}

impl Image {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The digest of length and bytes.
    pub(super) fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| {
            let mut hasher = Hasher::new();
            hasher.update(&(self.len as u64).to_le_bytes());
            for page in self.pages.iter() {
                hasher.update(page.digest().as_bytes());
            }
            hasher.finish()
        })
    }

    /// Cuts it, or lets it grow with zeros.
    pub(super) fn resize(&mut self, len: usize) {
        self.digest = OnceLock::new();
        let inside = len % PAGE_BYTES;
        let pages = Arc::make_mut(&mut self.pages);
        pages.resize_with(len.div_ceil(PAGE_BYTES), || Arc::clone(&ZEROS));
        let shorter = len < self.len;
        self.len = len;
        if let Some(last) = pages.last_mut().filter(|_| shorter && inside != 0) {
            let mut bytes = last.bytes.clone();
            bytes[inside..].fill(0);
            *last = Page::of(bytes);
        }
    }

    /// Fills `out` with the bytes from `start` on; false if the file ends before.
    pub(super) fn read(&self, start: usize, out: &mut [u8]) -> bool {
        if start
            .checked_add(out.len())
            .is_none_or(|end| end > self.len)
        {
            return false;
        }
        let mut at = start;
        let mut rest = out;
        while !rest.is_empty() {
            let inside = at % PAGE_BYTES;
            let count = rest.len().min(PAGE_BYTES - inside);
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&self.pages[at / PAGE_BYTES].bytes[inside..inside + count]);
            (at, rest) = (at + count, later);
        }
        true
    }

    /// All of it.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }

    /// Puts the first `count` of the bytes there; the file grows if they reach behind its end.
    pub(super) fn put(&mut self, start: usize, data: &Data, count: usize) {
        let end = start + count.min(data.len);
        if end == start {
            return;
        }
        if end > self.len {
            self.resize(end);
        }
        self.digest = OnceLock::new();
        let pages = Arc::make_mut(&mut self.pages);
        let mut at = start;
        while at < end {
            let inside = at % PAGE_BYTES;
            let part = (end - at).min(PAGE_BYTES - inside);
            let from = at - start;
            let whole = part == PAGE_BYTES && from.is_multiple_of(PAGE_BYTES);
            let shared = data.pages[from / PAGE_BYTES..].first().filter(|_| whole);
            pages[at / PAGE_BYTES] = match shared {
                Some(page) => Arc::clone(page),
                None => {
                    let mut bytes = pages[at / PAGE_BYTES].bytes.clone();
                    data.read(from, &mut bytes[inside..inside + part]);
                    Page::of(bytes)
                }
            };
            at += part;
        }
    }

    /// Turns one bit over.
    pub(super) fn flip(&mut self, at: usize, bit: u8) {
        let mut byte = [0];
        if self.read(at, &mut byte) {
            self.put(at, &Data::new(&[byte[0] ^ 1 << (bit % 8)]), 1);
        }
    }
}

impl From<&[u8]> for Image {
    fn from(bytes: &[u8]) -> Self {
        let mut image = Self::default();
        image.put(0, &Data::new(bytes), bytes.len());
        image
    }
}

/// The bytes of a write, cut into pages from its own beginning.
#[derive(Clone, Debug)]
pub(super) struct Data {
    len: usize,
    pages: Vec<Arc<Page>>,
}

impl Data {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self {
            len: bytes.len(),
            pages: bytes
                .chunks(PAGE_BYTES)
                .map(|chunk| Page::of(chunk.to_vec()))
                .collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Fills `out` with the bytes from `from` on, which are there.
    fn read(&self, from: usize, out: &mut [u8]) {
        for (at, byte) in (from..).zip(out) {
            *byte = self.pages[at / PAGE_BYTES].bytes[at % PAGE_BYTES];
        }
    }

    /// A part of it.
    pub(super) fn part(&self, from: usize, len: usize) -> Self {
        let mut bytes = vec![0; len.min(self.len.saturating_sub(from))];
        self.read(from, &mut bytes);
        Self::new(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image does what a vector does.
    #[test]
    fn an_image_is_a_vector_of_bytes() {
        let (mut image, mut model) = (Image::default(), Vec::new());
        let mut seed = 7u64;
        let mut draw = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % bound
        };
        for _ in 0..400 {
            let (at, len) = (draw(6) * 2048 + draw(3), draw(4) * 2048 + draw(5));
            match draw(4) {
                0 => {
                    image.resize(at);
                    model.resize(at, 0);
                }
                1 if !model.is_empty() => {
                    let at = draw(model.len());
                    image.flip(at, 3);
                    model[at] ^= 8;
                }
                _ => {
                    let bytes: Vec<u8> = (0..len).map(|_| draw(256) as u8).collect();
                    let kept = len - draw(2) * (len / 3);
                    image.put(at, &Data::new(&bytes), kept);
                    if kept > 0 && model.len() < at + kept {
                        model.resize(at + kept, 0);
                    }
                    if kept > 0 {
                        model[at..at + kept].copy_from_slice(&bytes[..kept]);
                    }
                }
            }
            assert_eq!(image.to_vec(), model);
            assert_eq!(image.digest(), Image::from(&model[..]).digest());
            assert!(!image.read(model.len(), &mut [0]));
        }
    }
}
