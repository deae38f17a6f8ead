//! A node of the image's directory, with up to 64 entries. At height 1 the entries refer to stored pages or long
//! values, above that to lower nodes.

use super::format::{FANOUT, MAX_HEIGHT, NODE_HEAD_LEN, NODE_MAGIC, check_place};
use super::stored::Stored;

/// The entries of a node, with holes.
pub(crate) type Entries = [Option<Stored>; FANOUT];

/// Encodes a node. It holds at least one entry: an empty part has no node.
pub fn encode(height: u8, entries: &Entries) -> Vec<u8> {
    debug_assert!((1..=MAX_HEIGHT).contains(&height) && entries.iter().any(Option::is_some));
    let present = entries.iter().enumerate().filter(|(_, entry)| entry.is_some());
    let bitmap = present.fold(0_u64, |bitmap, (index, _)| bitmap | 1 << index);
    let mut out = Vec::with_capacity(NODE_HEAD_LEN + FANOUT * Stored::LEN);
    out.extend_from_slice(&NODE_MAGIC);
    out.extend_from_slice(&[height, 0, 0, 0]);
    out.extend_from_slice(&bitmap.to_le_bytes());
    entries.iter().flatten().for_each(|entry| out.extend_from_slice(&entry.encode()));
    out
}

/// Decodes a node of an expected height; all its entries are in the used space, which ends at `end`.
///
/// # Errors
/// Returns the problem.
pub fn decode(bytes: &[u8], height: u8, end: u64) -> Result<Entries, &'static str> {
    let (head, mut rest) =
        bytes.split_first_chunk::<NODE_HEAD_LEN>().ok_or("it is too short for a node")?;
    let [a, b, c, d, stated, _, _, _, bitmap @ ..] = *head;
    if [a, b, c, d] != NODE_MAGIC {
        return Err("it is no node");
    }
    if stated != height {
        return Err("the node has another height than its place in the directory");
    }
    let bitmap = u64::from_le_bytes(bitmap);
    if bitmap == 0 {
        return Err("the node is empty");
    }
    let mut entries = [None; FANOUT];
    for (index, entry) in entries.iter_mut().enumerate().filter(|(at, _)| bitmap >> at & 1 == 1) {
        let (bytes, behind) = rest.split_first_chunk().ok_or("the node lacks entries")?;
        rest = behind;
        let stored = Stored::decode(bytes).ok_or("the node has an entry of nothing")?;
        check_place(&stored, end)?;
        if height > 1 && stored.is_packed() {
            return Err("a lower node would be compressed");
        }
        debug_assert!(index < FANOUT);
        *entry = Some(stored);
    }
    if !rest.is_empty() {
        return Err("the node has more bytes than entries");
    }
    Ok(entries)
}
