//! Pieces of blobs: a journal's record of each, so that it can be read and verified alone.

use annals_schema::Blob;
use xxhash_rust::xxh3::Xxh3;

use super::{MAX_PIECE, compact, opcode};

/// How long the checksum in front of a piece's bytes is.
pub const SUM_LEN: usize = 8;

/// Appends a piece: number, offset, length, checksum, bytes.
pub fn put(out: &mut Vec<u8>, blob: Blob, offset: u64, bytes: &[u8]) {
    debug_assert!(bytes.len() <= MAX_PIECE, "a longer piece can't be read");
    out.push(opcode::BLOB);
    compact::put(out, blob.0);
    compact::put(out, offset);
    compact::put(out, bytes.len() as u64);
    out.extend_from_slice(&sum(blob, offset, bytes).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Returns the bytes of a piece from the journal's, which begin with the checksum; `None` if that isn't
/// the checksum of this piece of this blob.
#[inline]
pub fn verify(blob: Blob, offset: u64, sum_and_bytes: &[u8]) -> Option<&[u8]> {
    let (found, bytes) = sum_and_bytes.split_first_chunk::<SUM_LEN>()?;
    (u64::from_le_bytes(*found) == sum(blob, offset, bytes)).then_some(bytes)
}

/// Hashes the bytes of a piece with its identity: a piece that is read at a wrong position is detected, even if it is
/// whole there.
fn sum(blob: Blob, offset: u64, bytes: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&blob.0.to_le_bytes());
    hash.update(&offset.to_le_bytes());
    hash.update(bytes);
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_verifies_only_as_itself() {
        let mut out = Vec::new();
        put(&mut out, Blob(3), 9, b"bytes");
        let stored = out.get(4..).unwrap();
        let hashed = [&3u64.to_le_bytes()[..], &9u64.to_le_bytes(), b"bytes"].concat();
        let sum = xxhash_rust::xxh3::xxh3_64(&hashed).to_le_bytes();
        assert_eq!(stored, [&sum[..], b"bytes"].concat(), "as docs/format.md has it");
        assert_eq!(verify(Blob(3), 9, stored), Some(&b"bytes"[..]));
        assert_eq!(verify(Blob(4), 9, stored), None, "another blob");
        assert_eq!(verify(Blob(3), 8, stored), None, "another place in it");
        assert_eq!(verify(Blob(3), 9, stored.get(..12).unwrap()), None, "too short");
        assert_eq!(verify(Blob(3), 9, stored.get(..7).unwrap()), None, "no checksum");
        for at in 0..stored.len() {
            let mut changed = stored.to_vec();
            *changed.get_mut(at).unwrap() ^= 16;
            assert_eq!(verify(Blob(3), 9, &changed), None, "byte {at}");
        }
    }
}
