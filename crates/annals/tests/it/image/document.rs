//! A reader of images that was written from `docs/format.md` alone, and what it reads.
//!
//! It knows nothing of the library but the schema, and verifies nothing: where the document and the bytes
//! disagree it panics, or gives something else than the library does.

mod packed;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use annals::{Field, Schema, Table, Type};

const PAGE: usize = 16384;
/// Is in the length of a packed page.
const PACKED: usize = 1 << 31;
/// Is there too, if the page is packed cells or a packed node.
const BITS: usize = 1 << 30;

fn word(bytes: &[u8], at: usize, len: usize) -> u64 {
    bytes[at..at + len].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn number_at(bytes: &[u8], at: usize, len: usize) -> usize {
    usize::try_from(word(bytes, at, len)).unwrap()
}

/// The bytes of a row's values; none for null.
type Values = Vec<Option<Vec<u8>>>;

/// One array: its objects by number.
type Objects = BTreeMap<usize, Vec<u8>>;

/// An image: the metadata of its newest root, of which a part may be read already, and the arrays that are
/// left.
pub(super) struct Reader<'f> {
    file: &'f [u8],
    metadata: &'f [u8],
    arrays: Vec<&'f [u8]>,
    /// What was stored as numbers in lanes.
    pub(super) packed: BTreeSet<&'static str>,
}

impl<'f> Reader<'f> {
    /// Begins with the root with the greatest number.
    pub(super) fn new(file: &'f [u8]) -> Self {
        let roots = [4096, 8192].map(|slot| &file[slot + 512..slot + 512 + 192]);
        let roots = roots.into_iter().filter(|root| root.starts_with(b"ROOT"));
        let root = roots.max_by_key(|root| word(root, 8, 8)).unwrap();
        let catalog = object(file, &root[56..88]);
        assert_eq!(&catalog[..4], b"CATL");
        let metadata = 16 + 40 * number_at(catalog, 4, 4);
        let mut arrays: Vec<_> = catalog[16..metadata].chunks(40).collect();
        arrays.reverse();
        Self { file, metadata: &catalog[metadata..], arrays, packed: BTreeSet::new() }
    }

    fn take(&mut self, len: usize) -> &'f [u8] {
        let (taken, rest) = self.metadata.split_at(len);
        self.metadata = rest;
        taken
    }

    fn number(&mut self) -> u64 {
        let len = self.metadata[0].trailing_zeros() as usize + 1;
        match len {
            9 => word(self.take(9), 1, 8),
            len => word(self.take(len), 0, len) >> len,
        }
    }

    fn count(&mut self) -> usize {
        usize::try_from(self.number()).unwrap()
    }

    fn flag(&mut self) -> bool {
        let flag = self.take(1)[0];
        assert!(flag < 2);
        flag == 1
    }

    /// Reads all objects of the next array.
    fn array(&mut self, kind: u8) -> Objects {
        self.array_of(kind, "", |_| panic!("only cells and nodes are packed like that"))
    }

    /// Reads all objects of the next array; `unpack` is for those that are packed in lanes.
    fn array_of(
        &mut self,
        kind: u8,
        what: &'static str,
        unpack: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Objects {
        let array = self.arrays.pop().unwrap();
        assert_eq!(array[1], kind);
        let mut objects = Objects::new();
        if array[8..].iter().any(|&byte| byte != 0) {
            let met = Cell::new(false);
            let unpack = |bytes: &[u8]| {
                met.set(true);
                unpack(bytes)
            };
            walk(self.file, (array[0], 0), &array[8..], &unpack, &mut objects);
            self.packed.extend(met.get().then_some(what));
        }
        if kind == 1 {
            objects.values_mut().for_each(|page| page.resize(PAGE, 0));
        }
        objects
    }

    fn bits(&mut self) -> impl Fn(usize) -> bool + use<'f> {
        let small = [self.number(), self.number()];
        let pages = self.array(1);
        move |at| match pages.get(&(at / (PAGE * 8))) {
            Some(page) => page[at / 8 % PAGE] >> (at % 8) & 1 == 1,
            None => small.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1),
        }
    }

    fn cells(&mut self, width: usize) -> impl Fn(usize) -> Vec<u8> + use<'f> {
        let len = self.count();
        let small = self.take(len);
        assert!(len.is_multiple_of(width) && len <= 1024);
        let pages = self.array_of(1, "cells", |bytes| packed::cells(bytes, width));
        move |at| {
            let begin = at * width;
            let small = small.get(begin..begin + width);
            let page = pages.get(&(at / (PAGE / width)));
            let cell = page.map(|page| &page[begin % PAGE..][..width]).or(small);
            cell.map_or(vec![0; width], <[u8]>::to_vec)
        }
    }

    /// Reads numbers to be given out: those that are in use, if there are any.
    fn numbers(&mut self) -> Vec<usize> {
        let (end, free) = (self.count(), self.count());
        let cells = self.cells(4);
        let free: Vec<_> = (0..free).map(|at| number_at(&cells(at), 0, 4)).collect();
        (0..end).filter(|number| !free.contains(number)).collect()
    }

    /// Reads a tree: its keys and values, in order.
    fn tree(&mut self, size: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (root, height, len) = (self.count(), self.count(), self.count());
        let nodes = self.array_of(1, "nodes", packed::node);
        let numbers = self.numbers();
        let long = self.array(2);
        assert!(self.numbers().iter().all(|number| long.contains_key(number)));
        let counts = self.cells(8);
        let mut entries = Vec::new();
        let mut pending = vec![(root, 0)];
        while let Some((number, level)) = pending.pop().filter(|_| len > 0) {
            assert!(numbers.contains(&number));
            let node = Node { bytes: &nodes[&number], long: &long };
            if level == height {
                entries.extend((0..node.len()).map(|at| node.entry(at, size)));
                continue;
            }
            let below = (0..node.len()).map(|at| number_at(&node.entry(at, 4).1, 0, 4));
            pending.extend(below.rev().map(|below| (below, level + 1)));
            let counted = number_at(&counts(number), 0, 8);
            assert_eq!(counted > 0, number != root, "of node {number}");
        }
        assert_eq!(entries.len(), len);
        assert!(entries.is_sorted());
        entries
    }

    /// Reads strings: the value of each slot.
    fn strings(&mut self) -> impl Fn(usize) -> Vec<u8> + use<'f> {
        let (tail, used) = (self.count(), self.count());
        let cells = self.cells(16);
        let heap = self.array(1);
        let dead = self.cells(4);
        let pages = self.numbers();
        let long = self.array(2);
        self.numbers();
        assert!(used <= PAGE && (tail == u32::MAX as usize || pages.contains(&tail)));
        assert!(pages.iter().all(|page| number_at(&dead(*page), 0, 4) <= PAGE));
        move |slot| {
            let cell = cells(slot);
            let len = number_at(&cell, 0, 4);
            let (number, at) = (number_at(&cell, 8, 4), number_at(&cell, 12, 4));
            let value = match at {
                _ if len <= 12 => return cell[4..4 + len].to_vec(),
                0xffff_fffe | 0xffff_ffff => long[&number].clone(),
                at => {
                    let entry = &heap[&number][at..];
                    assert_eq!((number_at(entry, 0, 8), number_at(entry, 8, 4)), (slot, len));
                    entry[12..12 + len].to_vec()
                }
            };
            assert_eq!(value[..4], cell[4..8]);
            value
        }
    }

    /// Reads a column: the value of each slot, null as none.
    fn column(&mut self, field: &Field) -> Box<dyn Fn(usize) -> Option<Vec<u8>> + 'f> {
        let nulls = field.nullable.then(|| self.bits());
        let value: Box<dyn Fn(usize) -> Vec<u8>> = match field.ty {
            Type::Bool => {
                let bits = self.bits();
                Box::new(move |slot| vec![u8::from(bits(slot))])
            }
            Type::Int8 | Type::UInt8 => Box::new(self.cells(1)),
            Type::Int16 | Type::UInt16 => Box::new(self.cells(2)),
            Type::Int32 | Type::UInt32 | Type::Float32 => Box::new(self.cells(4)),
            Type::String | Type::Bytes => Box::new(self.strings()),
            _ => Box::new(self.cells(8)),
        };
        Box::new(move |slot| match &nulls {
            Some(nulls) if nulls(slot) => None,
            _ => Some(value(slot)),
        })
    }

    /// Reads a table: its next id, and each row's id and the bytes of its values.
    pub(super) fn table(&mut self, table: &Table) -> (u64, Vec<(u64, Values)>) {
        let (start, len, base) = (self.count(), self.count(), self.count());
        let (reserved, _, end) = (self.count(), self.flag(), self.count());
        let (rows, next_id) = (self.count(), self.number());
        let live = self.bits();
        let extents = self.tree(16);
        let free = self.count();
        let stacks = [self.stack(), self.stack()].concat();
        assert_eq!(stacks.iter().map(|(_, len)| len).sum::<usize>(), free);
        assert!(base + len <= reserved && reserved <= end);
        let mut ids = BTreeMap::new();
        for (key, value) in &extents {
            let start = key.iter().fold(0, |id, &byte| id << 8 | u64::from(byte));
            let (base, len) = (number_at(value, 0, 8), number_at(value, 8, 8));
            ids.extend((0..len).map(|at| (start + at as u64, base + at)));
        }
        ids.extend((0..len).map(|at| ((start + at) as u64, base + at)));
        ids.retain(|_, slot| live(*slot));
        assert_eq!(ids.len(), rows);
        let in_free = |slot: &usize| stacks.iter().any(|(at, len)| (*at..at + len).contains(slot));
        assert!(ids.values().all(|slot| *slot < end && !in_free(slot)));
        let columns: Vec<_> = table.fields.iter().map(|field| self.column(field)).collect();
        let row = |(id, slot)| (id, columns.iter().map(|column| column(slot)).collect());
        (next_id, ids.into_iter().map(row).collect())
    }

    fn stack(&mut self) -> Vec<(usize, usize)> {
        let len = self.count();
        let cells = self.cells(16);
        (0..len).map(cells).map(|cell| (number_at(&cell, 0, 8), number_at(&cell, 8, 8))).collect()
    }

    /// Reads the time of the last commit and the schema's length, and skips its commands.
    pub(super) fn begin(&mut self) -> i64 {
        let time = word(self.take(8), 0, 8).cast_signed();
        let len = self.count();
        self.take(len);
        time
    }

    /// Reads whether a table or an index is still there.
    pub(super) fn is_there(&mut self) -> bool {
        self.flag()
    }

    /// Reads an index: the ids of its rows.
    pub(super) fn index(&mut self) -> Vec<u64> {
        let id = |(key, _): (Vec<u8>, Vec<u8>)| {
            let (_, id) = key.split_last_chunk::<8>().unwrap();
            id.iter().fold(0, |id, &byte| id << 8 | u64::from(byte))
        };
        self.tree(0).into_iter().map(id).collect()
    }

    /// Reads the number of the last blob, and the pieces: blob, offset, position, length.
    pub(super) fn blobs(&mut self) -> (u64, Vec<[u64; 4]>) {
        let big = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let last = self.number();
        let piece = |(key, value): (Vec<u8>, Vec<u8>)| {
            [big(&key[..8]), big(&key[8..]), word(&value, 0, 8), word(&value, 8, 4)]
        };
        (last, self.tree(12).into_iter().map(piece).collect())
    }

    /// Reads the history index: of each entry the key of its table, the first row, the number of rows, and the place.
    pub(super) fn history(&mut self) -> Vec<[u64; 4]> {
        let about = self.count();
        self.take(about);
        let (root, height, _, len) = (self.count(), self.count(), self.count(), self.count());
        let nodes = self.array(2);
        let mut entries = Vec::new();
        let mut pending: Vec<_> = root.checked_sub(1).map(|root| (root, 0)).into_iter().collect();
        while let Some((number, level)) = pending.pop() {
            let node = &nodes[&number];
            assert!(node.len() <= 4096);
            if level == height {
                groups(node, &mut entries);
                continue;
            }
            let below = node.chunks(40).rev();
            pending.extend(below.map(|child| (number_at(child, 32, 8), level + 1)));
        }
        assert_eq!(entries.len(), len);
        assert!(entries.is_sorted_by_key(|&[table, row, rows, _]| (table, row, rows)));
        entries
    }

    /// Fails unless all was read.
    pub(super) fn end(&self) {
        assert!(self.metadata.is_empty() && self.arrays.is_empty());
    }
}

/// Reads the entries of a leaf of the history index.
fn groups(leaf: &[u8], entries: &mut Vec<[u64; 4]>) {
    let stretches = 2 * number_at(leaf, leaf.len() - 2, 2);
    let (groups, stretches) = leaf[..leaf.len() - 2].split_at(leaf.len() - 2 - stretches);
    let begins = stretches.chunks(2).map(|place| number_at(place, 0, 2) % (1 << 15));
    let mut begins: Vec<_> = begins.collect();
    let mut from =
        Reader { file: &[], metadata: groups, arrays: Vec::new(), packed: BTreeSet::new() };
    let (mut table, mut row) = (0, 0);
    while !from.metadata.is_empty() {
        let at = groups.len() - from.metadata.len();
        let mut head = from.number();
        let is_begin = begins.first() == Some(&at);
        if is_begin {
            begins.remove(0);
            assert_eq!(head % 4, 3, "a stretch begins with a table");
        }
        if head % 4 == 3 {
            (table, row) = (head / 4, 0);
            head = from.number();
        }
        row += if head / 4 == 1 << 61 { from.number() } else { head / 4 };
        let rows = if head % 4 == 2 { from.number() } else { 1 };
        let count = if head.is_multiple_of(4) { 1 } else { from.number() };
        let mut place = 0;
        for _ in 0..count {
            place = from.number() + if rows == 0 { 0 } else { place };
            entries.push([table, row, rows, place]);
        }
    }
    assert!(begins.is_empty());
}

fn object<'f>(file: &'f [u8], entry: &[u8]) -> &'f [u8] {
    let place = number_at(entry, 0, 8);
    let len = number_at(entry, 24, 4);
    &file[place..place + if len >= PACKED { len % BITS } else { len }]
}

/// Collects the objects that an entry leads to, by their numbers.
fn walk(
    file: &[u8],
    (height, before): (u8, usize),
    entry: &[u8],
    unpack: &dyn Fn(&[u8]) -> Vec<u8>,
    objects: &mut Objects,
) {
    let bytes = object(file, entry);
    if height == 0 {
        let object = match number_at(entry, 24, 4) / BITS {
            2 => packed::block(bytes),
            3 => unpack(bytes),
            _ => bytes.to_vec(),
        };
        objects.insert(before, object);
        return;
    }
    assert_eq!((&bytes[..4], bytes[4]), (&b"NODE"[..], height));
    let bitmap = word(bytes, 8, 8);
    let there = (0..64).filter(|i| bitmap >> i & 1 == 1);
    for (i, entry) in there.zip(bytes[16..].chunks(32)) {
        walk(file, (height - 1, before * 64 + i), entry, unpack, objects);
    }
}

/// A node of a tree.
struct Node<'n> {
    bytes: &'n [u8],
    long: &'n Objects,
}

impl Node<'_> {
    fn len(&self) -> usize {
        number_at(self.bytes, 2, 2)
    }

    /// Reads the key and the value of an entry.
    fn entry(&self, at: usize, size: usize) -> (Vec<u8>, Vec<u8>) {
        let short = |at| number_at(self.bytes, at, 2);
        assert_eq!(short(0), size);
        let slot = 128 + 8 * at;
        let (cell, len) = (short(slot + 4), short(slot + 6));
        let end = cell + len % 0x8000;
        let part = &self.bytes[cell..end];
        let (key, end) = match len / 0x8000 {
            0 => (part.to_vec(), end),
            _ => (self.long[&number_at(self.bytes, end, 4)].clone(), end + 4),
        };
        assert!(cell >= short(4) && key.starts_with(part));
        let shared = short(8);
        let known = &key[..key.len().min(1024)];
        let mut head = known[shared.min(known.len())..].to_vec();
        head.resize(4, 0);
        assert_eq!(self.bytes[slot..slot + 4].iter().rev().copied().collect::<Vec<_>>(), head[..4]);
        (key, self.bytes[end..end + size].to_vec())
    }
}

/// Returns the tables and indexes by their numbers, dropped ones too; none of the last ones was dropped.
pub(super) fn numbers(schema: &Schema) -> (u32, u32) {
    let tables = schema.tables().iter().map(|table| table.number.0 + 1).max();
    let indexes = schema.indexes().iter().map(|index| index.number.0 + 1).max();
    (tables.unwrap_or(0), indexes.unwrap_or(0))
}
