//! Each copy of a structure in the head, separately, for examining a damaged file.

use super::format::{
    FRAMES_AT, HEADER_AT, Header, LIVE_AT, LIVE_COPY_AT, Live, SLOT_AT, SLOT_COPY_AT, SLOT_LEN,
    Slot,
};
use annals_storage::Storage;
use annals_storage::bytes::Fields;

/// The copies in a journal's first 16 KiB; `None` for each that doesn't verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The length of the file in bytes.
    pub len: u64,
    /// The header: at the start of the file and of the two slot blocks.
    pub headers: [Option<Header>; 3],
    /// The two slots, each with its two copies.
    pub slots: [[Option<Slot>; 2]; 2],
    /// The hash of the segment's header: of a header, else as a slot states it.
    pub segment: Option<u64>,
    /// The live block. Neither copy verifies before a new file was opened.
    pub live: [Option<Live>; 2],
}

impl Copies {
    /// Reads the head of a file, which may be anything.
    #[doc(hidden)]
    pub fn read(storage: &dyn Storage) -> std::io::Result<Self> {
        let mut head = vec![0; usize::try_from(FRAMES_AT).map_err(std::io::Error::other)?];
        storage.read_at(0, &mut head)?;
        Ok(Self::of(&head, storage.len()?))
    }

    fn of(head: &[u8], len: u64) -> Self {
        let headers = [HEADER_AT, SLOT_AT[0], SLOT_AT[1]]
            .map(|at| array_at(head, at).as_ref().and_then(Header::decode));
        let known = headers.iter().flatten().next().map(Header::hash);
        // Without any header the slot's own word has to do for whose it is.
        let stated = |bytes: &[u8; SLOT_LEN]| Fields(bytes).u64(40);
        let mut segment = known;
        let slots = SLOT_AT.map(|block| {
            SLOT_COPY_AT.map(|copy| {
                let bytes: [u8; SLOT_LEN] = array_at(head, block + copy)?;
                let slot = Slot::decode(&bytes, known.unwrap_or(stated(&bytes)))?;
                segment.get_or_insert(stated(&bytes));
                Some(slot)
            })
        });
        let live = LIVE_COPY_AT.map(|copy| Live::decode(&array_at(head, LIVE_AT + copy)?));
        Self { len, headers, slots, segment, live }
    }

    /// True if nothing of it verifies.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.headers.iter().flatten().next().is_none()
            && self.slots.iter().flatten().flatten().next().is_none()
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    bytes.get(usize::try_from(at).ok()?..)?.first_chunk().copied()
}
