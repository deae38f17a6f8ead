//! Writing a run: each page is written when it is full, so that a run of any size needs only a record of each page in
//! memory.

use super::entry::{Entry, PageBuilder};
use super::extent::Extent;
use super::file::IndexFile;
use super::format::{CHILDREN, PAGE, ZONES};
use super::node::{self, Child, Key};
use super::zone::Zone;
use crate::Result;
use crate::bytes::hash;

/// How much is written at once.
const BUFFER: usize = 64 * PAGE;

/// Writes pages in sequence.
struct Pages<'s> {
    file: &'s IndexFile,
    at: u64,
    /// Where the room ends.
    limit: u64,
    buffer: Vec<u8>,
}

/// The outcome of writing a run.
pub(super) enum Made {
    Whole(Extent),
    /// The room was too small.
    Full,
}

impl Pages<'_> {
    fn push(&mut self, page: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(page);
        if self.buffer.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.at + self.buffer.len() as u64 <= self.limit {
            let written = self.file.storage().write_at(self.at, &self.buffer);
            written.map_err(|error| self.file.io("can't be written", error))?;
        }
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the pages above some; returns the hash of the one on top.
    fn above(&mut self, mut children: Vec<Child>) -> Result<u64> {
        let most = usize::try_from(CHILDREN).unwrap_or(usize::MAX);
        while children.len() > 1 {
            let mut parents = Vec::with_capacity(children.len().div_ceil(most));
            for chunk in children.chunks(most) {
                let (page, told) = node::page_of(chunk);
                self.push(&page)?;
                parents.push(told);
            }
            children = parents;
        }
        Ok(children.first().map_or(0, |top| top.sum))
    }
}

/// Makes a run of entries, which are sorted, and zones, from number `zone` on. It is written between `place` and
/// `limit`.
///
/// # Errors
/// `Io`, and the errors of the iterator of entries.
pub(super) fn write_run(
    file: &IndexFile,
    place: u64,
    limit: u64,
    zone: u64,
    zones: Vec<Zone>,
    mut entries: impl Iterator<Item = Result<Entry>>,
) -> Result<Made> {
    let mut pages = Pages { file, at: place, limit, buffer: Vec::new() };
    let (mut builder, mut leaves, mut count) = (PageBuilder::default(), Vec::new(), 0);
    let mut finish = |builder: &mut PageBuilder, pages: &mut Pages<'_>| -> Result<()> {
        let (page, first, end) = builder.finish(zone);
        leaves.push(Child { first, end, sum: hash(&page) });
        pages.push(&page)
    };
    entries.try_for_each(|entry| -> Result<()> {
        let entry = entry?;
        count += 1;
        if !builder.push(&entry, zone) {
            finish(&mut builder, &mut pages)?;
            builder.push(&entry, zone);
        }
        Ok(())
    })?;
    if !builder.is_empty() {
        finish(&mut builder, &mut pages)?;
    }
    let leaf_count = leaves.len() as u64;
    let rows_sum = pages.above(leaves)?;
    let (segments, end_txid, least_time) = told_of(&zones);
    let zones_sum = write_zones(&mut pages, zone, &zones)?;
    pages.flush()?;
    Ok(match pages.at <= limit {
        false => Made::Full,
        true => Made::Whole(Extent {
            place,
            zone,
            zones: zones.len() as u64,
            leaves: leaf_count,
            entries: count,
            segments,
            end_txid,
            least_time,
            rows_sum,
            zones_sum,
        }),
    })
}

fn told_of(zones: &[Zone]) -> ((u64, u64), u64, i64) {
    let segment = |zone: Option<&Zone>| zone.map_or(0, |zone| zone.segment);
    let least = zones.iter().map(|zone| zone.least_time).min().unwrap_or(i64::MAX);
    let end = zones.last().map_or(0, |zone| zone.end.txid);
    ((segment(zones.first()), segment(zones.last())), end, least)
}

fn write_zones(pages: &mut Pages<'_>, first: u64, zones: &[Zone]) -> Result<u64> {
    let most = usize::try_from(ZONES).unwrap_or(usize::MAX);
    let (mut leaves, mut number) = (Vec::new(), first);
    // Each records the least time from it on.
    let mut least = i64::MAX;
    let mut zones = zones.to_vec();
    for zone in zones.iter_mut().rev() {
        least = least.min(zone.least_time);
        zone.least_time = least;
    }
    for chunk in zones.chunks(most) {
        let mut page = Vec::with_capacity(PAGE);
        chunk.iter().for_each(|zone| page.extend_from_slice(&zone.encode()));
        page.resize(PAGE, 0);
        let key = |row| Key { table: 0, row };
        let end = number + chunk.len() as u64;
        leaves.push(Child { first: key(number), end: key(end), sum: hash(&page) });
        pages.push(&page)?;
        number = end;
    }
    pages.above(leaves)
}
