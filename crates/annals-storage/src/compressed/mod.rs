//! Compressed files: blocks of a file, each a separate zstd frame, with a table of their positions. So any byte is
//! read by unpacking one block, in bounded memory, and `zstd -d` unpacks the whole.
//!
//! ```text
//! +------+-------+-------+-- - - --+-------+
//! | head | block | block |         | table |   head and table are skippable frames
//! +------+-------+-------+-- - - --+-------+
//! ```

#[cfg(feature = "zstd")]
mod layout;
#[cfg(feature = "zstd")]
mod reader;
#[cfg(feature = "zstd")]
mod writer;

use std::io;
use std::sync::Arc;

use super::Storage;

#[cfg(feature = "zstd")]
pub use writer::compress;

/// The beginning of a compressed file, which identifies it: a skippable frame of zstd of 64 bytes in all.
pub(crate) const MAGIC: [u8; 16] = *b"\x50\x2A\x4D\x18\x38\x00\x00\x00\x89ANZSTD\n";
/// True if bytes are the beginning of a compressed file.
pub fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Returns a reader of the unpacked contents, if the file is compressed; otherwise the file itself.
pub(super) fn unpacked(file: Arc<dyn Storage>) -> io::Result<Arc<dyn Storage>> {
    let mut start = [0; MAGIC.len()];
    if file.read_at(0, &mut start)? < MAGIC.len() || !is_compressed(&start) {
        return Ok(file);
    }
    #[cfg(feature = "zstd")]
    return Ok(Arc::new(reader::Unpacked::open(file)?));
    #[cfg(not(feature = "zstd"))]
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "it is compressed, and this program was built without the feature `zstd` of Annals",
    ))
}
