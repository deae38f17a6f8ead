//! Inserting many keys in their order: each leaf is found, loaded and copied once for all keys that belong to it.
//!
//! A leaf that can't take its keys is divided into as many as are needed. All of them are about equally full; but where
//! the keys are a run without others between them, those that come before its last two are full: they get no more. And
//! where the run goes on with keys that came in their order, the leaf keeps what is before it, and fills.
//!
//! An error leaves the tree partly changed: the caller must return to the previous one.

use std::iter::Peekable;
use std::ops::Range;

use super::node::{self, Entry, LIMIT, Node};
use super::place::{LEVELS, child_for};
use super::{HEADER, NONE, SLOT, Tree, unfit};
use crate::Result;
use crate::pages::page::{Epoch, PAGE};

/// The number of bytes for entries in a node.
const ROOM: usize = PAGE - HEADER;

/// A leaf, and the keys that belong to it.
struct Target {
    leaf: u32,
    /// The inner nodes on the way, from the root on.
    inner: [u32; LEVELS],
    /// The first key of the next leaf, if there is one.
    bound: Option<Vec<u8>>,
}

/// All entries of a leaf that is to be divided.
struct Merged<'a> {
    entries: Vec<Entry<'a>>,
    /// Where the new ones are, if they are a run without others between them: before this entry of the leaf, and up to
    /// this one of all.
    run: Option<(usize, usize)>,
}

impl Tree {
    /// Inserts the first of some keys, which are sorted, and all after it that belong to the same leaf. Those that the tree
    /// has are left out. Its entries have no values.
    pub(in super::super) fn merge_next<'k>(
        &mut self,
        keys: &mut Peekable<impl Iterator<Item = &'k [u8]>>,
        epoch: &Epoch,
    ) -> Result<()> {
        debug_assert!(self.value_size == 0, "keys without values");
        let Some(first) = keys.next() else { return Ok(()) };
        if self.root == NONE {
            self.root = self.add_node(self.value_size, epoch)?;
        }
        let target = self.target(first)?;
        let mut batch = vec![first];
        let is_within = |key: &&[u8]| target.bound.as_deref().is_none_or(|bound| *key < bound);
        while let Some(key) = keys.next_if(is_within) {
            if batch.last() != Some(&key) {
                batch.push(key);
            }
        }
        let used = Node::new(&*self.leaf(target.leaf)?).used();
        let more: usize = batch.iter().map(|key| size_of_entry(key)).sum();
        if used + more <= ROOM {
            self.add_to_leaf(&target, &batch, epoch)
        } else {
            self.divide_leaf(&target, &batch, epoch)
        }
    }

    /// Finds the leaf of a key.
    fn target(&self, key: &[u8]) -> Result<Target> {
        let mut target = Target { leaf: self.root, inner: [NONE; LEVELS], bound: None };
        for place in target.inner.iter_mut().take(self.height) {
            *place = target.leaf;
            let page = self.inner(target.leaf)?;
            let node = Node::new(&page);
            let at = child_for(node, key, &self.long)?;
            if at + 1 < node.count() {
                let bound = target.bound.get_or_insert_default();
                bound.clear();
                bound.extend_from_slice(&node.key(at + 1, &self.long)?);
            }
            target.leaf = node.child(at);
        }
        Ok(target)
    }

    /// Inserts keys into a leaf that has room for all of them.
    fn add_to_leaf(&mut self, target: &Target, batch: &[&[u8]], epoch: &Epoch) -> Result<()> {
        let mut added = 0;
        for key in batch {
            let found = Node::new(&*self.leaf(target.leaf)?).search(key, 0, &self.long)?;
            let Err(at) = found else { continue };
            let (part, long) = self.keep(key, epoch)?;
            let entry = Entry { part, long, value: &[] };
            if !node::insert(self.nodes.get_mut(target.leaf, epoch)?, at, entry) {
                return Err(unfit());
            }
            added += 1;
        }
        let inner = target.inner.into_iter().take(self.height).skip(1);
        self.count_leaf(inner, 0, added, epoch)
    }

    /// Divides a leaf, and inserts keys that it has no room for.
    fn divide_leaf(&mut self, target: &Target, batch: &[&[u8]], epoch: &Epoch) -> Result<()> {
        let old = *self.leaf(target.leaf)?;
        let old = Node::new(&old);
        let Merged { entries, run } = self.merged(old, batch, epoch)?;
        let is_end = run.is_some() && target.bound.is_none() && !ends_with(old, &entries);
        let goes_on = run.filter(|&(at, _)| !is_end && old.is_in_order(at)).map(|(_, end)| end);
        let sizes: Vec<usize> = entries.iter().map(size).collect();
        let mut parts = parts(&sizes, goes_on, (run.is_some(), is_end)).into_iter();
        let part = |range: Range<usize>| entries.get(range).unwrap_or_default();
        let first = part(parts.next().unwrap_or_default());
        let inner = target.inner.into_iter().take(self.height).skip(1);
        self.count_leaf(inner, old.count(), first.len(), epoch)?;
        self.write_leaf(target.leaf, first, in_part(run, &(0..first.len())), epoch)?;
        let mut left = target.leaf;
        for range in parts {
            let right = self.add_node(self.value_size, epoch)?;
            self.write_leaf(right, part(range.clone()), in_part(run, &range), epoch)?;
            let separator = self.separator(left, right, self.height)?;
            let mut path = self.path_to(&separator)?;
            let inner: Vec<u32> = path.iter().skip(1).map(|&(number, _)| number).collect();
            self.count_leaf(inner.into_iter(), 0, range.len(), epoch)?;
            self.link(&mut path, left, right, &separator, epoch)?;
            left = right;
        }
        Ok(())
    }

    /// Returns the entries of a leaf and those of new keys, in order.
    fn merged<'a>(
        &mut self,
        old: Node<'a>,
        batch: &[&'a [u8]],
        epoch: &Epoch,
    ) -> Result<Merged<'a>> {
        let mut entries = Vec::with_capacity(old.count() + batch.len());
        let (mut done, mut run, mut is_run) = (0, None, true);
        for key in batch {
            let Err(at) = old.search(key, 0, &self.long)? else { continue };
            is_run &= run.is_none() || at == done;
            entries.extend((done..at).map(|i| old.entry(i)));
            done = done.max(at);
            let (part, long) = self.keep(key, epoch)?;
            entries.push(Entry { part, long, value: &[] });
            run = Some((at, entries.len()));
        }
        entries.extend((done..old.count()).map(|i| old.entry(i)));
        Ok(Merged { entries, run: run.filter(|_| is_run) })
    }

    /// Makes a leaf have these entries, and no others. Those in `run` were the last ones to come, in their order.
    fn write_leaf(
        &mut self,
        number: u32,
        entries: &[Entry<'_>],
        run: Range<usize>,
        epoch: &Epoch,
    ) -> Result<()> {
        let value_size = self.value_size;
        let bytes = self.nodes.get_mut(number, epoch)?;
        node::clear(bytes, value_size);
        for (at, &entry) in entries.iter().enumerate() {
            if !node::insert(bytes, at, entry) {
                return Err(unfit());
            }
        }
        node::note_run(bytes, run);
        Ok(())
    }
}

/// Returns which entries of a part are of a run that ends in it; none if it ends elsewhere.
fn in_part(run: Option<(usize, usize)>, part: &Range<usize>) -> Range<usize> {
    match run {
        Some((begin, end)) if part.start < end && end <= part.end => {
            begin.saturating_sub(part.start)..end - part.start
        }
        _ => 0..0,
    }
}

/// Returns how many bytes the entry of a key takes, without a value.
fn size_of_entry(key: &[u8]) -> usize {
    SLOT + if key.len() <= LIMIT { key.len() } else { LIMIT + 4 }
}

fn size(entry: &Entry<'_>) -> usize {
    SLOT + entry.part.len() + if entry.long.is_some() { 4 } else { 0 } + entry.value.len()
}

/// True if the last of these entries is that of a node, rather than a new one.
fn ends_with(node: Node<'_>, entries: &[Entry<'_>]) -> bool {
    let Some(last) = node.count().checked_sub(1) else { return false };
    let (old, new) = (node.entry(last), entries.last());
    new.is_some_and(|new| std::ptr::eq(new.part, old.part))
}

/// Divides entries of these sizes among leaves. `goes_on`: after the one before this, keys will come; `is_run`: nothing comes
/// between the new ones any more; `is_end`: nor after them.
fn parts(
    sizes: &[usize],
    goes_on: Option<usize>,
    (is_run, is_end): (bool, bool),
) -> Vec<Range<usize>> {
    let largest = sizes.iter().copied().max().unwrap_or_default();
    // A part takes no more than this and one entry.
    let most = ROOM - largest;
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut left: usize = sizes.iter().sum();
    if let Some(run_end) = goes_on {
        // What was after it in the old leaf stays together.
        while begin < run_end {
            let end = take(sizes, begin, ROOM).0.min(run_end);
            parts.push(begin..end);
            begin = end;
        }
        parts.extend((begin < sizes.len()).then_some(begin..sizes.len()));
        return parts;
    }
    while is_run && left > if is_end { ROOM } else { 2 * most } {
        let (end, taken) = take(sizes, begin, ROOM);
        parts.push(begin..end);
        (begin, left) = (end, left - taken);
    }
    let mut count = if left <= ROOM { 1 } else { left.div_ceil(most) };
    while count > 1 {
        // At least its share, so that those after it don't get larger ones.
        let (end, taken) = take(sizes, begin, left.div_ceil(count) + largest - 1);
        parts.push(begin..end);
        (begin, left, count) = (end, left - taken, count - 1);
    }
    parts.push(begin..sizes.len());
    parts
}

/// Returns the end of the entries from `begin` on that take no more than `most` bytes, and how many these take.
fn take(sizes: &[usize], begin: usize, most: usize) -> (usize, usize) {
    let mut taken = 0;
    let rest = sizes.get(begin..).unwrap_or_default().iter();
    let fits = |size: &&usize| {
        taken += **size;
        taken <= most
    };
    let count = rest.take_while(fits).count();
    let end = begin + count;
    (end, sizes.get(begin..end).unwrap_or_default().iter().sum())
}
