//! Finding the places of a row, and records.

use super::leaf::LeafReader;
use super::node::{Child, children};
use super::{Entry, HistoryIndex, Key};
use crate::Result;

impl HistoryIndex {
    /// Returns the places where a row was changed, in order.
    ///
    /// Cost: reads one node for each level of the tree, and one for each other leaf with rows that include it.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn places_of(&self, key: Key) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        if let Some(root) = self.root {
            self.stab(root, self.height, key, &mut found)?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn stab(&self, node: u64, height: u8, key: Key, found: &mut Vec<u64>) -> Result<()> {
        let bytes = self.node(node)?;
        if height == 0 {
            let is_before = |entry: &Entry| entry.key <= key;
            let has = |entry: &Entry| entry.count > 0 && key < entry.end();
            let same = |entry: &Entry| entry.key.table == key.table && has(entry);
            let entries = LeafReader::near(&bytes, key).take_while(is_before).filter(same);
            found.extend(entries.map(|entry| entry.place));
            return Ok(());
        }
        let mut below = children(&bytes).take_while(|child| child.first <= key);
        below.try_for_each(|child| match child.may_have(key) {
            true => self.stab(child.node, height - 1, key, found),
            false => Ok(()),
        })
    }

    /// Returns the first row of a table that was changed, from one on.
    ///
    /// Cost: as [`places_of`](Self::places_of), twice.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn row_from(&self, key: Key) -> Result<Option<u64>> {
        let Some(root) = self.root else { return Ok(None) };
        if !self.places_of(key)?.is_empty() {
            return Ok(Some(key.row));
        }
        let next = self.entry_from(root, self.height, key)?;
        Ok(next.filter(|next| next.table == key.table).map(|next| next.row))
    }

    fn entry_from(&self, node: u64, height: u8, key: Key) -> Result<Option<Key>> {
        let bytes = self.node(node)?;
        if height == 0 {
            let mut entries = LeafReader::near(&bytes, key);
            return Ok(entries.find(|entry| entry.key >= key).map(|entry| entry.key));
        }
        let mut below = children(&bytes).peekable();
        while let Some(child) = below.next() {
            // A child is before the key if the next one doesn't begin after it.
            if below.peek().is_none_or(|next| next.first > key)
                && let Some(found) = self.entry_from(child.node, height - 1, key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the last record of a table whose row isn't after one, as its row and its numbers.
    ///
    /// Cost: reads one node for each level of the tree.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn record_at(&self, key: Key) -> Result<Option<Record>> {
        self.root.map_or(Ok(None), |root| self.last_record(root, self.height, key))
    }

    fn last_record(&self, node: u64, height: u8, key: Key) -> Result<Option<Record>> {
        let bytes = self.node(node)?;
        if height == 0 {
            let (mut found, mut numbers) = (None, Vec::new());
            for entry in of_table(LeafReader::near(&bytes, key), key) {
                if found != Some(entry.key.row) {
                    found = Some(entry.key.row);
                    numbers.clear();
                }
                numbers.push(entry.place);
            }
            return Ok(found.map(|row| Record { row, numbers }));
        }
        let below: Vec<Child> = children(&bytes).take_while(|child| child.first <= key).collect();
        for child in below.into_iter().rev() {
            let found = self.last_record(child.node, height - 1, key)?;
            if found.is_some() || child.first.table < key.table {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Visits the records of a table, from the last one whose row isn't after one, backwards, while `visit` returns
    /// true.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn records_back(&self, key: Key, visit: &mut dyn FnMut(Record) -> bool) -> Result<()> {
        match self.root {
            Some(root) => self.back(root, self.height, key, visit).map(drop),
            None => Ok(()),
        }
    }

    fn back(
        &self,
        node: u64,
        height: u8,
        key: Key,
        visit: &mut dyn FnMut(Record) -> bool,
    ) -> Result<bool> {
        let bytes = self.node(node)?;
        if height == 0 {
            let mut records: Vec<Record> = Vec::new();
            for entry in of_table(LeafReader::new(&bytes), key) {
                match records.last_mut().filter(|last| last.row == entry.key.row) {
                    Some(last) => last.numbers.push(entry.place),
                    None => {
                        records.push(Record { row: entry.key.row, numbers: vec![entry.place] });
                    }
                }
            }
            return Ok(records.into_iter().rev().all(visit));
        }
        let start = Key { table: key.table, row: 0 };
        let below: Vec<Child> = children(&bytes).take_while(|child| child.first <= key).collect();
        for child in below.into_iter().rev() {
            if !self.back(child.node, height - 1, key, visit)? {
                return Ok(false);
            }
            if child.first < start {
                break;
            }
        }
        Ok(true)
    }

    /// True if there is an entry of a table.
    ///
    /// # Errors
    /// A node can't be loaded.
    pub fn has_table(&self, table: u64) -> Result<bool> {
        self.root.map_or(Ok(false), |root| self.has_below(root, self.height, table))
    }

    fn has_below(&self, node: u64, height: u8, table: u64) -> Result<bool> {
        let bytes = self.node(node)?;
        if height == 0 {
            return Ok(LeafReader::new(&bytes).any(|entry| entry.key.table == table));
        }
        for child in children(&bytes) {
            let may_have = child.first.table <= table && table <= child.end.table;
            if may_have && self.has_below(child.node, height - 1, table)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Visits all entries, in order.
    ///
    /// # Errors
    /// A node can't be loaded; those of `visit`.
    pub fn each(&self, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        self.root.map_or(Ok(()), |root| self.each_below(root, self.height, visit))
    }

    fn each_below(
        &self,
        node: u64,
        height: u8,
        visit: &mut dyn FnMut(Entry) -> Result<()>,
    ) -> Result<()> {
        let bytes = self.node(node)?;
        match height {
            0 => LeafReader::new(&bytes).try_for_each(visit),
            _ => children(&bytes)
                .try_for_each(|child| self.each_below(child.node, height - 1, visit)),
        }
    }
}

/// Returns the numbers of the records of a table in a leaf, up to those of a row.
fn of_table(leaf: LeafReader<'_>, key: Key) -> impl Iterator<Item = Entry> {
    let same = move |entry: &Entry| entry.key.table == key.table && entry.count == 0;
    leaf.take_while(move |entry| entry.key <= key).filter(same)
}

/// A record: numbers under a key that has nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The row of its key.
    pub row: u64,
    /// Its numbers.
    pub numbers: Vec<u64>,
}
