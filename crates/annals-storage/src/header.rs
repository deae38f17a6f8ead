//! How the header of a journal is recognized, so that no journal is taken for a file that can be rebuilt.

use crate::bytes::Fields;
use crate::slots::first_copy;
use crate::{Access, Directory};

/// How a journal begins: not text, and damaged by anything that converts line ends.
pub const MAGIC: [u8; 8] = *b"\x89ANNALS\n";
/// Where the header is.
pub const HEADER_AT: u64 = 0;
/// Length of the header.
pub const HEADER_LEN: usize = 256;
/// Where the two slot blocks are. Each begins with a copy of the header.
pub const SLOT_AT: [u64; 2] = [4096, 8192];
/// The length that the header states, which every version must keep.
pub const STATED_LEN: u32 = 256;
/// Where the checksum of the header is.
pub const SUM_AT: usize = HEADER_LEN - 8;

const _: () = assert!(HEADER_LEN == STATED_LEN as usize);

/// True if these bytes are a header, and not damaged.
#[must_use]
pub fn is_header(bytes: &[u8; HEADER_LEN]) -> bool {
    let from = Fields(bytes);
    from.array(0) == MAGIC && from.checked(SUM_AT) && from.u32(12) == STATED_LEN
}

/// True if a file is a journal, or a segment of one, whatever its name says: it can be read, and has a whole header.
#[must_use]
pub fn holds_journal(directory: &dyn Directory, name: &str) -> bool {
    directory.open(name, Access::Read).is_ok_and(|storage| {
        let copies = [HEADER_AT, SLOT_AT[0], SLOT_AT[1]];
        first_copy(&*storage, copies, |header| is_header(header).then_some(()))
            .is_ok_and(|found| found.is_some())
    })
}
