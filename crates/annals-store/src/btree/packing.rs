//! Nodes in an image without the bits that their entries share.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 2 | how many entries there are |
//! | 2 | 2 | the length of each key |
//! | 4 | 2 | the size of each value |
//! | 6 | 2 | how many columns there are |
//! | 8 | | the cells in the order of the keys, as [`rows`] |
//!
//! That isn't possible where keys have different lengths, or are too long for a node. A restored node has its cells in
//! the order of its keys, the first one at the end of the page, and the longest prefix.

use super::node::{self, MAX_VALUE, Node};
use super::{HEADER, SLOT};
use crate::arena::PAGE;
use crate::pages::base::Form;
use crate::pages::packing::{NodePacking, Packing, rows};
use crate::pages::page::PageRef;

/// The form of a tree's pages.
pub(super) const FORM: Form<PageRef> =
    Form { check: node::is_node, packing: Packing::Nodes(&NodePacking { pack, unpack }) };

/// The number of bytes before the rows.
const HEAD: usize = 8;

fn pack(page: &[u8; PAGE]) -> Option<Vec<u8>> {
    let node = Node::new(page);
    let (count, size) = (node.count(), node.size());
    let key_len = (count > 0).then(|| node.slot(0).2)?;
    let width = key_len + size;
    if key_len > node::LIMIT || width == 0 || (1..count).any(|i| node.slot(i).2 != key_len) {
        return None;
    }
    let mut cells = Vec::with_capacity(count * width);
    for i in 0..count {
        let offset = node.slot(i).1;
        cells.extend_from_slice(&page[offset..offset + width]);
    }
    let packed = rows::pack(&cells, width)?;
    let mut out = Vec::with_capacity(HEAD + packed.bytes.len());
    for number in [count, key_len, size, packed.columns] {
        out.extend(u16::try_from(number).ok()?.to_le_bytes());
    }
    out.extend(packed.bytes);
    Some(out)
}

fn unpack(packed: &[u8], page: &mut [u8; PAGE]) -> Option<()> {
    let (head, packed) = packed.split_first_chunk::<HEAD>()?;
    let (numbers, _) = head.as_chunks::<2>();
    let number = |at: usize| numbers.get(at).map(|it| usize::from(u16::from_le_bytes(*it)));
    let (count, key_len, size, columns) = (number(0)?, number(1)?, number(2)?, number(3)?);
    let width = key_len + size;
    if key_len > node::LIMIT || size > MAX_VALUE || HEADER + count * (SLOT + width) > PAGE {
        return None;
    }
    rows::unpack(packed, columns, width, count, page)?;
    node::lay_out(page, node::EqualCells { count, key_len, size });
    Some(())
}
