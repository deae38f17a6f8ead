//! Uploading a journal: what is new, in ranges that are joined as they grow old.

use annals::internals::Source;
use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Error, ErrorKind, Result, Timestamp};
use annals_storage::Spool;

use super::bucket::{Bucket, Created};
use super::manifest::{LeftOut, Manifest, Range};
use super::memory;
use crate::local::BATCH;

/// So many neighbours of about the same size are joined.
const JOINED: usize = 8;
/// Larger ranges aren't joined.
const LARGE: u64 = 64 << 20;
/// The size of the smallest class.
const SMALL: u64 = 64 << 10;
/// Objects that were left out, and manifests, are removed when so many manifests have come since: whoever reads the archive
/// has looked again by then.
const KEPT: u64 = 32;

/// What was uploaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uploaded {
    /// How many transactions, if their number is known.
    pub transactions: u64,
    /// How many bytes of the journal.
    pub bytes: u64,
    /// How many objects were created, manifests included.
    pub objects: u64,
}

/// Uploads a journal to an archive. One at a time: a new one ends the one before it.
#[derive(Debug)]
pub struct Uploader {
    bucket: Bucket,
    manifest: Manifest,
    /// True if the manifest is in the archive.
    is_known: bool,
    writer: String,
}

impl Uploader {
    /// Takes over an archive, which must be of this journal and have no transaction that it doesn't have; or begins it.
    ///
    /// # Errors
    /// `Diverged`: the archive is of another journal, or of another history of it; those of the bucket and the source.
    pub fn open(bucket: Bucket, source: &Source) -> Result<Self> {
        let writer = format!("{:016x}", SystemClock.random());
        let journal = source.facts()?.id;
        let Some(newest) = Manifest::newest(&bucket, 0)? else {
            let manifest = Manifest::first(journal, writer.clone());
            return Ok(Self { bucket, manifest, is_known: false, writer });
        };
        if newest.journal != journal {
            let message = format!(
                "{}: is the archive of another database: name an empty place",
                bucket.name()
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        if let Some(end) = newest.end()
            && !source.has(end)?
        {
            return Err(diverged(&bucket, source, &newest, end)?);
        }
        let mut uploader = Self { bucket, manifest: newest.clone(), is_known: true, writer };
        let (number, epoch) = (newest.number + 1, newest.epoch + 1);
        let taken = Manifest { number, epoch, writer: uploader.writer.clone(), ..newest };
        uploader.publish(taken)?;
        Ok(uploader)
    }

    /// Returns where it uploads to.
    #[must_use]
    pub const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns what the archive has.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Uploads what is new, up to the end of the journal as it is now. Only transactions are uploaded that are on
    /// permanent storage. When it returns, the archive has them.
    ///
    /// Memory: a range, which is about 8 MiB or one transaction, and ranges that are joined, at most 64 MiB of each.
    ///
    /// # Errors
    /// `Conflict`: another uploader took over; those of the bucket and the source.
    pub fn upload(&mut self, source: &Source) -> Result<Uploaded> {
        let mut uploaded = Uploaded::default();
        loop {
            let after = self.manifest.end();
            let batch = source.after(after, BATCH)?;
            if batch.is_empty() {
                return Ok(uploaded);
            }
            let mut spool = memory();
            batch.copy_to(&mut spool)?;
            let bytes = bytes_of(&spool)?;
            let range = Range::of(after, batch.next, batch.is_seal, &bytes);
            self.bucket.create_same(&range.name, &bytes)?;
            uploaded.transactions += batch.transactions;
            uploaded.bytes += bytes.len() as u64;
            uploaded.objects += 2;
            let mut next = self.next();
            next.ranges.push(range);
            uploaded.objects += self.join(&mut next)?;
            self.publish(next)?;
            self.clean()?;
        }
    }

    fn next(&self) -> Manifest {
        let number = self.manifest.number + u64::from(self.is_known);
        Manifest { number, ..self.manifest.clone() }
    }

    /// Joins the last ranges while there are enough of one size; returns how many objects were created.
    fn join(&self, next: &mut Manifest) -> Result<u64> {
        let mut created = 0;
        loop {
            let from = next.ranges.len().saturating_sub(JOINED);
            let last = next.ranges.get(from..).unwrap_or_default();
            let class = last.last().map(class_of);
            let is_ripe = last.len() == JOINED
                && last.iter().all(|range| !range.is_seal && Some(class_of(range)) == class)
                && last.iter().map(|range| range.bytes).sum::<u64>() <= LARGE;
            let (Some(first), Some(end)) = (last.first(), last.last()) else { return Ok(created) };
            if !is_ripe {
                return Ok(created);
            }
            let names: Vec<_> = last.iter().map(|range| range.name.as_str()).collect();
            let mut joined = Vec::new();
            for (range, bytes) in last.iter().zip(self.bucket.get_all(&names)?) {
                let bytes = bytes.filter(|bytes| range.is(bytes));
                joined.extend(bytes.ok_or_else(|| damaged(&self.bucket, range))?);
            }
            let after = first.after.map(|after| after.0);
            let range = Range::of(after, end.next.0, false, &joined);
            self.bucket.create_same(&range.name, &joined)?;
            created += 1;
            let by = next.number;
            for old in next.ranges.drain(from..) {
                next.left_out.push(LeftOut { name: old.name, by });
            }
            next.ranges.push(range);
        }
    }

    /// Makes a manifest the newest of the archive, if nobody else made that number.
    fn publish(&mut self, mut next: Manifest) -> Result<()> {
        next.time = Timestamp(SystemClock.now()).to_string();
        let (name, bytes) = (Manifest::name(next.number), next.encode());
        while self.bucket.create(&name, &bytes)? == Created::Exists {
            let there = self.bucket.get(&name)?;
            // It was said to be there, but isn't: somebody's request is still under way.
            let Some(there) = there else { continue };
            if there == bytes {
                break;
            }
            let other = Manifest::decode(self.bucket.name(), next.number, &there)?;
            let message = format!(
                "{}: another uploader ({}) took over with manifest {}: two can't upload to one archive",
                self.bucket.name(),
                other.writer,
                other.number
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        (self.manifest, self.is_known) = (next, true);
        Ok(())
    }

    /// Removes what was left out long ago. It is gone from the list with the next manifest.
    fn clean(&mut self) -> Result<()> {
        let number = self.manifest.number;
        let old = number.saturating_sub(KEPT);
        if old > 0 {
            self.bucket.remove(&Manifest::name(old))?;
        }
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.manifest.left_out.drain(..).partition(|it| it.by + KEPT <= number);
        self.manifest.left_out = kept;
        gone.iter().try_for_each(|it| self.bucket.remove(&it.name))
    }
}

fn class_of(range: &Range) -> u32 {
    (range.bytes / SMALL).checked_ilog2().map_or(0, |class| class / 3 + 1)
}

/// Returns the error that an object isn't what the manifest says.
pub(super) fn damaged(bucket: &Bucket, range: &Range) -> Error {
    Error::corrupt(format!(
        "{}: {} is missing or damaged: it should be {} bytes with the hash {}",
        bucket.name(),
        range.name,
        range.bytes,
        range.hash
    ))
}

fn bytes_of(spool: &Spool) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let copied = spool.pieces(|_, piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    copied.map_err(|error| Error::io("can't read the spooled frames", error))?;
    Ok(bytes)
}

/// Returns the error that the archive has what the journal doesn't have.
fn diverged(bucket: &Bucket, source: &Source, newest: &Manifest, end: Cursor) -> Result<Error> {
    let here = source.end()?;
    let mut common = 0;
    for range in &newest.ranges {
        match source.has(range.next.0)? {
            true => common = range.next.0.txid.0,
            false => break,
        }
    }
    let message = match end.txid > here.txid && source.has(here)? && common == here.txid.0 {
        true => format!(
            "{}: has transactions up to {}, and {} only up to {}: it is an older copy; restore from the archive instead",
            bucket.name(),
            end.txid,
            source.name(),
            here.txid
        ),
        false => format!(
            "{} and {} differ after transaction {common}; nothing was uploaded: archive to an empty place",
            bucket.name(),
            source.name()
        ),
    };
    Ok(Error::new(ErrorKind::Diverged, message))
}
