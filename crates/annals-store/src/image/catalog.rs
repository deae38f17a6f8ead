//! The catalog: the roots of all arrays, and after them the store's metadata.

use super::format::{
    ARRAY_BYTES, ARRAY_LEN, ARRAY_PAGES, CATALOG_HEAD_LEN, CATALOG_MAGIC, LONGEST_PAGE, MAX_HEIGHT,
    check_place,
};
use super::stored::Stored;

/// The kind of an array's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pages, none longer than a page.
    Pages,
    /// Values of any length.
    Bytes,
}

/// An array of stored objects, by its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// How many nodes are on the way to an object: at 0 the root is the object number 0 itself.
    pub(crate) height: u8,
    /// The kind of the objects.
    pub(crate) kind: Kind,
    /// The topmost node, if there is anything.
    pub(crate) root: Option<Stored>,
}

/// The contents of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// All arrays, in the order of the store.
    pub arrays: Vec<Array>,
    /// The metadata of the store, which the image doesn't interpret.
    pub metadata: Vec<u8>,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Pages => ARRAY_PAGES,
            Self::Bytes => ARRAY_BYTES,
        }
    }

    const fn of_code(code: u8) -> Option<Self> {
        match code {
            ARRAY_PAGES => Some(Self::Pages),
            ARRAY_BYTES => Some(Self::Bytes),
            _ => None,
        }
    }

    /// True if an object of this kind may have this length.
    pub(crate) const fn may_have(self, len: u32) -> bool {
        matches!(self, Self::Bytes) || len <= LONGEST_PAGE
    }
}

impl Catalog {
    /// Encodes the catalog.
    pub fn encode(&self) -> Vec<u8> {
        let arrays = self.arrays.len() * ARRAY_LEN;
        let mut out = Vec::with_capacity(CATALOG_HEAD_LEN + arrays + self.metadata.len());
        out.extend_from_slice(&CATALOG_MAGIC);
        out.extend_from_slice(&u32::try_from(self.arrays.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&(self.metadata.len() as u64).to_le_bytes());
        for array in &self.arrays {
            out.extend_from_slice(&[array.height, array.kind.code(), 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&array.root.map_or([0; Stored::LEN], |root| root.encode()));
        }
        out.extend_from_slice(&self.metadata);
        out
    }

    /// Decodes a catalog, whose arrays are in the used space, which ends at `end`.
    ///
    /// # Errors
    /// Returns the problem.
    pub(crate) fn decode(bytes: &[u8], end: u64) -> Result<Self, &'static str> {
        let (head, mut rest) =
            bytes.split_first_chunk::<CATALOG_HEAD_LEN>().ok_or("it is too short for a catalog")?;
        let [a, b, c, d, e, f, g, h, metadata @ ..] = *head;
        if [a, b, c, d] != CATALOG_MAGIC {
            return Err("it is no catalog");
        }
        let count = usize::try_from(u32::from_le_bytes([e, f, g, h]));
        let count = count.map_err(|_| "the catalog has too many arrays")?;
        if rest.len() / ARRAY_LEN < count {
            return Err("the catalog lacks arrays");
        }
        let mut arrays = Vec::with_capacity(count);
        for _ in 0..count {
            let (array, behind) = rest.split_first_chunk().ok_or("the catalog lacks arrays")?;
            rest = behind;
            arrays.push(Array::decode(array, end)?);
        }
        if rest.len() as u64 != u64::from_le_bytes(metadata) {
            return Err("the catalog's metadata have another length than they should");
        }
        Ok(Self { arrays, metadata: rest.to_vec() })
    }
}

impl Array {
    fn decode(bytes: &[u8; ARRAY_LEN], end: u64) -> Result<Self, &'static str> {
        let [height, kind, _, _, _, _, _, _, stored @ ..] = bytes;
        let kind = Kind::of_code(*kind).ok_or("an array of the catalog has an unknown kind")?;
        if *height > MAX_HEIGHT {
            return Err("an array of the catalog is too high");
        }
        let root = Stored::decode(stored);
        if let Some(root) = &root {
            check_place(root, end)?;
        }
        Ok(Self { height: *height, kind, root })
    }
}
