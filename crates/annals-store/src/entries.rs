//! Entries of an index that are collected, and then sorted.
//!
//! Invariant: an entry's head is its first 16 bytes, with zeros after its end. So heads compare as the entries do, or are
//! equal.

use std::ops::Range;

use annals_schema::RowId;

use crate::Result;
use crate::index::key;
use crate::index::tree::IndexTree;
use crate::pages::cells::place;
use crate::table::Table;

/// Entries of one index.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    all: Vec<Collected>,
}

/// An entry: its bytes are followed by one that says whether no other row may have its key.
#[derive(Clone, Copy, Debug)]
struct Collected {
    head: u128,
    begin: usize,
    end: usize,
}

impl Entries {
    /// Adds an entry; `counts`: no other row may have its key.
    #[inline]
    pub(crate) fn push(&mut self, entry: &[u8], counts: bool) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(entry);
        let end = self.bytes.len();
        self.bytes.push(u8::from(counts));
        self.all.push(Collected { head: head_of(entry), begin, end });
    }

    /// Returns how many bytes they take in memory.
    pub(crate) const fn memory(&self) -> usize {
        self.bytes.len() + self.all.len() * size_of::<Collected>()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.all.clear();
    }

    /// Forgets the first entries.
    pub(crate) fn forget_first(&mut self, count: usize) {
        self.all.drain(..count.min(self.all.len()));
    }

    /// Sorts them.
    pub(crate) fn sort(&mut self) {
        let Self { bytes, all } = self;
        let full = |it: &Collected| bytes.get(it.begin..it.end);
        all.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| full(a).cmp(&full(b))));
    }

    /// Returns a sorted copy of the entries' order, over the same bytes.
    pub(crate) fn sorted(&self) -> Vec<&[u8]> {
        let mut sorted: Vec<&[u8]> = self.iter().map(|(entry, _)| entry).collect();
        sorted.sort_unstable();
        sorted
    }

    /// Collects the entries of existing rows, and sorts them.
    pub(crate) fn fill(
        &mut self,
        index: &IndexTree,
        table: &Table,
        ids: Range<u64>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        self.clear();
        self.collect(index, table, ids, key)?;
        self.sort();
        Ok(())
    }

    /// Adds the entries of existing rows.
    pub(crate) fn collect(
        &mut self,
        index: &IndexTree,
        table: &Table,
        ids: Range<u64>,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let mut id = ids.start;
        for run in table.runs(id, ids.end.saturating_sub(id)) {
            let (slot, len) = run?;
            for slot in slot..slot + place(len) {
                let counts = index.key(table, |field| table.value(field, slot), key)?;
                key::encode_id(key, RowId(id));
                self.push(key, counts);
                id += 1;
            }
        }
        Ok(())
    }

    /// Returns the entries in order, each with whether no other row may have its key.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], bool)> {
        let entry = |&Collected { begin, end, .. }: &Collected| {
            let counts = self.bytes.get(end).is_some_and(|&counts| counts > 0);
            (self.bytes.get(begin..end).unwrap_or_default(), counts)
        };
        self.all.iter().map(entry)
    }
}

/// Returns the first bytes of an entry, as a number that compares as they do.
#[inline]
#[expect(clippy::big_endian_bytes, reason = "it is the order of the bytes that counts")]
fn head_of(entry: &[u8]) -> u128 {
    if let Some(head) = entry.first_chunk() {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; 16];
    head.iter_mut().zip(entry).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_simulated::Rng;

    #[test]
    fn they_are_sorted_as_their_bytes_are() {
        let mut random = Rng::new(7);
        let mut entries = Entries::default();
        let mut model = Vec::new();
        for _ in 0..5000 {
            let len = random.index(40);
            let entry: Vec<u8> = (0..len)
                .map(|at| if at < 14 { 0 } else { b"\0\x01\xff"[random.index(3)] })
                .collect();
            let counts = random.percent(50);
            entries.push(&entry, counts);
            model.push((entry, counts));
        }
        entries.forget_first(17);
        model.drain(..17);
        model.sort_by(|a, b| a.0.cmp(&b.0));
        let sorted: Vec<_> = model.iter().map(|(entry, _)| entry.as_slice()).collect();
        assert_eq!(entries.sorted(), sorted);
        entries.sort();
        assert!(entries.iter().map(|(entry, _)| entry).eq(sorted));
        let mut counts: Vec<_> =
            entries.iter().map(|(entry, counts)| (entry.to_vec(), counts)).collect();
        counts.sort();
        model.sort();
        assert_eq!(counts, model);
    }
}
