//! A node of a directory of the image, as bytes: which of its 64 places have something, and their
//! entries.

use super::Stored;

/// The places of a node.
const PLACES: usize = 64;

/// Encodes a node of so many steps above the leaves.
pub(crate) fn encode_node(entries: &[Option<Stored>], height: u8) -> Vec<u8> {
    let mut out = vec![0; 16];
    out[0] = 1;
    out[1] = height;
    let mut there = 0_u64;
    for (place, entry) in entries.iter().take(PLACES).enumerate() {
        if let Some(entry) = entry {
            there |= 1 << place;
            out.extend_from_slice(&entry.encode());
        }
    }
    out[8..16].copy_from_slice(&there.to_le_bytes());
    out
}

/// Decodes a node; `None` if it is none, or of another height.
pub(crate) fn decode_node(bytes: &[u8], height: u8) -> Option<Vec<Option<Stored>>> {
    let (head, entries) = bytes.split_first_chunk::<16>()?;
    let (kind, there) = head.split_first_chunk::<8>()?;
    let there = u64::from_le_bytes(*there.first_chunk()?);
    let (entries, rest) = entries.as_chunks::<{ Stored::LEN }>();
    let fits = *kind == [1, height, 0, 0, 0, 0, 0, 0]
        && rest.is_empty()
        && entries.len() == there.count_ones() as usize;
    let mut entries = entries.iter().filter(|_| fits);
    let place = |place| match there >> place & 1 {
        0 => Some(None),
        _ => entries.next().and_then(Stored::decode).map(Some),
    };
    (0..PLACES).map(place).collect()
}
