//! Restoring packed pages by the document.

use super::{PAGE, number_at, word};

/// Restores the bytes of an LZ4 block: literals, then a copy of what is some bytes back, and again.
pub(super) fn block(block: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), block);
    let take = |rest: &mut &[u8], len: usize| {
        let (taken, behind) = rest.split_at(len);
        *rest = behind;
        taken.to_vec()
    };
    let length = |rest: &mut &[u8], four: u8| {
        let mut len = usize::from(four);
        let mut more = four == 15;
        while more {
            let byte = take(rest, 1)[0];
            len += usize::from(byte);
            more = byte == 255;
        }
        len
    };
    while !rest.is_empty() {
        let token = take(&mut rest, 1)[0];
        let literals = length(&mut rest, token >> 4);
        out.extend(take(&mut rest, literals));
        if rest.is_empty() {
            break;
        }
        let back = number_at(&take(&mut rest, 2), 0, 2);
        for _ in 0..length(&mut rest, token & 15) + 4 {
            out.push(out[out.len() - back]);
        }
    }
    out
}

/// Reads `n` numbers of `b` bits in lanes from the beginning of some bytes; returns them, and how many bytes that were.
fn lanes(bytes: &[u8], n: usize, b: usize) -> (Vec<u64>, usize) {
    let w = if b <= 8 {
        8
    } else if b <= 16 {
        16
    } else {
        32
    };
    let l = n.div_ceil(w);
    let bit = |lane: usize, at: usize| {
        let word = number_at(bytes, (at / w * l + lane) * w / 8, w / 8);
        (word >> (at % w) & 1) as u64
    };
    let number = |i: usize| (0..b).map(|at| bit(i % l, i / l * b + at) << at).sum();
    ((0..n).map(number).collect(), l * b * w / 8)
}

/// Restores packed cells.
pub(super) fn cells(bytes: &[u8], width: usize) -> Vec<u8> {
    let (size, bits, cells) =
        (usize::from(bytes[0]), usize::from(bytes[1]), number_at(bytes, 2, 2));
    assert_eq!((size, &bytes[4..8]), (width, &[0; 4][..]));
    let (differences, len) = lanes(&bytes[16..], cells, bits);
    assert_eq!(16 + len, bytes.len());
    let cell =
        |difference: u64| (word(bytes, 8, 8) + difference).to_le_bytes().into_iter().take(size);
    differences.into_iter().flat_map(cell).collect()
}

/// Restores a node without its hints, which nothing here reads.
pub(super) fn node(bytes: &[u8]) -> Vec<u8> {
    let short = |at| number_at(bytes, at, 2);
    let (entries, key, value, columns) = (short(0), short(2), short(4), short(6));
    let width = key + value;
    let base = &bytes[8..8 + width];
    let mut cells = vec![base.to_vec(); entries];
    let mut at = 8 + width + 4 * columns;
    for head in bytes[8 + width..at].chunks(4) {
        let (end, bits) = (number_at(head, 0, 2), number_at(head, 2, 2));
        let (differences, len) = lanes(&bytes[at..], entries, bits);
        at += len;
        for (cell, mut sum) in cells.iter_mut().zip(differences) {
            for byte in cell[..end].iter_mut().rev() {
                sum += u64::from(*byte);
                *byte = u8::try_from(sum & 255).unwrap();
                sum >>= 8;
            }
        }
    }
    assert_eq!(at, bytes.len());
    let mut page = vec![0; PAGE];
    let mut put = |at: usize, number: usize| {
        page[at..at + 2].copy_from_slice(&u16::try_from(number).unwrap().to_le_bytes());
    };
    let common =
        |other: &Vec<u8>| cells[0][..key].iter().zip(other).take_while(|(a, b)| a == b).count();
    let prefix = cells.iter().map(common).min().unwrap();
    let floor = PAGE - entries * width;
    for (at, number) in [(0, value), (2, entries), (4, floor), (8, prefix)] {
        put(at, number);
    }
    for i in 0..entries {
        put(128 + 8 * i + 4, PAGE - (i + 1) * width);
        put(128 + 8 * i + 6, key);
    }
    for (i, cell) in cells.iter().enumerate() {
        let mut head = cell[prefix..key].to_vec();
        head.resize(4, 0);
        head.truncate(4);
        head.reverse();
        page[128 + 8 * i..][..4].copy_from_slice(&head);
        page[PAGE - (i + 1) * width..][..width].copy_from_slice(cell);
    }
    page
}
