//! Uploading a journal: what is new, in ranges that are joined as they grow old.

use annals::storage::{Clock as _, SystemClock};
use annals::{Cursor, Error, ErrorKind, Result, Retention, Timestamp};
use bytes::Bytes;

use super::bucket::{Bucket, Created};
use super::manifest::{Between, LeftOut, Manifest, Range, damaged};
use super::pull::chain_of;
use super::{erased, image, retain};
use crate::frames::{Batch, Source};

/// So many neighbours of about the same size are joined.
const JOINED: usize = 8;
/// A range has about as many bytes at most, unless one transaction has more. Larger ranges aren't joined.
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
    /// Which history is kept.
    rules: Retention,
    has_images: bool,
    /// The number of the oldest manifest that may be there.
    oldest: u64,
}

/// How an archive is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archiving {
    /// How much history is kept; what any of the rules asks for is. Nothing is forgotten without a rule.
    pub rules: Retention,
    /// True if images are uploaded, from which lazy readers read the state.
    pub has_images: bool,
    /// True if the history of the source replaces one that differs from it, as long as it is of the same journal.
    pub replaces: bool,
}

impl Default for Archiving {
    fn default() -> Self {
        Self { rules: Retention::default(), has_images: true, replaces: false }
    }
}

impl Uploader {
    /// Takes over an archive, which must be of this journal and have no transaction that it doesn't have; or begins it.
    ///
    /// # Errors
    /// `Diverged`: the archive is of another journal, or of another history of it; those of the bucket and the source.
    pub fn open(bucket: Bucket, source: &Source) -> Result<Self> {
        Self::open_with(bucket, source, Archiving::default())
    }

    /// Does what [`open`](Self::open) does, with rules. If values were erased from the history since, [another
    /// generation](Self::upload) of the archive is begun.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(bucket: Bucket, source: &Source, how: Archiving) -> Result<Self> {
        let writer = format!("{:016x}", SystemClock.random());
        let journal = source.facts()?.id;
        let Archiving { rules, has_images, replaces } = how;
        let Some(newest) = Manifest::newest(&bucket, 0)? else {
            let manifest = Manifest::first(journal, writer);
            return Ok(Self { bucket, manifest, is_known: false, rules, has_images, oldest: 1 });
        };
        if newest.journal != journal {
            let message = format!(
                "{}: is the archive of another database: name an empty place",
                bucket.name()
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        let (number, epoch) = (newest.number + 1, newest.epoch + 1);
        let mut taken = Manifest { number, epoch, writer, ..newest.clone() };
        let stopped = taken.building.as_ref().and_then(|it| it.ranges.last());
        let stopped = stopped.map(|range| range.next.0);
        let is_right = |end: Option<Cursor>| end.map_or(Ok(true), |end| has(source, end));
        if taken.building.is_some() && !is_right(stopped)? {
            taken = erased::begin(taken, source)?;
        } else if taken.building.is_none() && !is_right(newest.end())? {
            if !replaces && !erased::is_of_before(&bucket, source, &newest.ranges)? {
                let end = newest.end().unwrap_or(Cursor { txid: annals::Txid(0), chain: 0 });
                return Err(diverged(&bucket, source, &newest, end)?);
            }
            taken = erased::begin(taken, source)?;
        }
        // One that was killed may have left some.
        let oldest = bucket.list("manifests", "")?.iter().find_map(|(name, _)| name.parse().ok());
        let oldest = oldest.unwrap_or(newest.number).min(newest.number);
        let (manifest, is_known) = (newest, true);
        let mut uploader = Self { bucket, manifest, is_known, rules, has_images, oldest };
        uploader.publish(taken)?;
        let Manifest { generation, left_out, .. } = &uploader.manifest;
        let was_cut = left_out.iter().any(|it| it.at_once);
        let from = if was_cut { 1 } else { generation.saturating_sub(1) };
        erased::sweep(&uploader.bucket, &uploader.manifest, from)?;
        image::sweep(&uploader.bucket, &uploader.manifest)?;
        uploader.clean()?;
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
    /// permanent storage. When it returns, the archive has them; it also has forgotten what the rules don't keep, and has a
    /// newer image, if there is one and it is worth it.
    ///
    /// After an erasure another generation is uploaded: the part of the history that was written again. Once all of it is
    /// there and was read back, it takes the place of the old one, whose objects are removed before this returns.
    ///
    /// Memory: two ranges, each of up to 64 MiB or one transaction, or those that are joined.
    ///
    /// # Errors
    /// `Conflict`: another uploader took over; `Forgotten`, `Diverged`: the source has another history since this was
    /// opened: open it again; those of the bucket and the source.
    pub fn upload(&mut self, source: &Source) -> Result<Uploaded> {
        let mut uploaded = Uploaded::default();
        let generation = self.manifest.growing_generation();
        let after = self.manifest.growing().last().map(|range| range.next.0);
        let mut fresh = Fresh::after(source, generation, after)?;
        while let Some(here) = fresh {
            let after = Some(here.range.next.0);
            // What follows is read while it is uploaded.
            let (stored, following) = std::thread::scope(|scope| {
                let following = scope.spawn(|| Fresh::after(source, generation, after));
                (self.store(here, &mut uploaded), following.join())
            });
            stored?;
            fresh = following.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        uploaded.objects += self.replace_generation()?;
        uploaded.objects += self.keep_image(source)?;
        uploaded.objects += self.forget()?;
        Ok(uploaded)
    }

    /// Uploads a range, and puts it in the list.
    fn store(&mut self, fresh: Fresh, uploaded: &mut Uploaded) -> Result<()> {
        let Fresh { range, bytes, transactions } = fresh;
        self.bucket.create_same(&range.name, &bytes)?;
        drop(bytes);
        uploaded.transactions += transactions;
        uploaded.bytes += range.bytes;
        uploaded.objects += 2;
        let mut next = self.next();
        next.growing_mut().push(range);
        uploaded.objects += self.join(&mut next)?;
        self.publish(next)?;
        self.clean()
    }

    /// Puts a complete generation in the place of the one before.
    fn replace_generation(&mut self) -> Result<u64> {
        if self.manifest.building.is_none() {
            return Ok(0);
        }
        let before = self.manifest.generation;
        let next = erased::complete(&self.bucket, self.next())?;
        self.publish(next)?;
        erased::sweep(&self.bucket, &self.manifest, before)?;
        self.clean()?;
        // The manifest that names what was removed isn't the newest for long.
        self.publish(self.next())?;
        Ok(2)
    }

    fn keep_image(&mut self, source: &Source) -> Result<u64> {
        if !self.has_images || !self.is_known {
            return Ok(0);
        }
        let Some((next, objects)) = image::upload(&self.bucket, source, self.next())? else {
            return Ok(0);
        };
        self.publish(next)?;
        self.clean()?;
        Ok(objects + 1)
    }

    fn forget(&mut self) -> Result<u64> {
        if self.rules == Retention::default() {
            return Ok(0);
        }
        let now = self.latest_certain()?;
        let Some(next) = retain::forget(&self.bucket, self.next(), &self.rules, now)? else {
            return Ok(0);
        };
        self.publish(next)?;
        self.clean()?;
        Ok(2)
    }

    /// Returns a time that is over by all that is known: by the clock here, by that of the store, and by that of who wrote the
    /// newest transaction. A clock that is ahead alone makes nothing old.
    fn latest_certain(&self) -> Result<Timestamp> {
        let mut now = SystemClock.now();
        if self.rules.time.is_some() {
            let stored = self.bucket.time_of(&Manifest::name(self.manifest.number))?;
            let committed = self.manifest.committed(self.manifest.ranges.len());
            now = [stored, committed].into_iter().flatten().fold(now, i64::min);
        }
        Ok(Timestamp(now))
    }

    fn next(&self) -> Manifest {
        let number = self.manifest.number + u64::from(self.is_known);
        Manifest { number, ..self.manifest.clone() }
    }

    /// Joins the last ranges while there are enough of one size; returns how many objects were created.
    fn join(&self, next: &mut Manifest) -> Result<u64> {
        let (mut created, generation) = (0, next.growing_generation());
        loop {
            let from = next.growing().len().saturating_sub(JOINED);
            let last = next.growing().get(from..).unwrap_or_default();
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
            let between = Between { generation, after, next: end.next.0, is_seal: false };
            let range = Range::of(between, &joined);
            self.bucket.create_same(&range.name, &joined.into())?;
            created += 1;
            let by = next.number;
            let old: Vec<_> = next.growing_mut().drain(from..).collect();
            // What the next generation has of the present one is needed until that is left out.
            let is_needed = |range: &Range| next.building.is_some() && next.ranges.contains(range);
            let old = old.into_iter().filter(|range| !is_needed(range));
            let old: Vec<_> =
                old.map(|old| LeftOut { name: old.name, by, at_once: false }).collect();
            next.left_out.extend(old);
            next.growing_mut().push(range);
        }
    }

    /// Makes a manifest the newest of the archive, if nobody else made that number.
    fn publish(&mut self, mut next: Manifest) -> Result<()> {
        next.time = Timestamp(SystemClock.now()).to_string();
        let (name, bytes) = (Manifest::name(next.number), next.encode().into());
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
        self.check_line(&next)?;
        (self.manifest, self.is_known) = (next, true);
        Ok(())
    }

    /// Fails if others have made and removed a manifest of this number, while this uploader was held up: then it was free, and
    /// says nothing. Manifests are removed in their order, so the one before it is gone, too.
    fn check_line(&self, next: &Manifest) -> Result<()> {
        let before = match self.is_known {
            true => self.bucket.get(&Manifest::name(self.manifest.number))?.is_some(),
            false => Manifest::newest(&self.bucket, 0)?.is_none_or(|it| it.number == next.number),
        };
        if before {
            return Ok(());
        }
        self.bucket.remove(&Manifest::name(next.number))?;
        let message = format!(
            "{}: others have uploaded since manifest {}, for so long that their manifests were removed again: two can't \
             upload to one archive",
            self.bucket.name(),
            self.manifest.number
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Removes what was left out long ago. It is gone from the list with the next manifest.
    fn clean(&mut self) -> Result<()> {
        let number = self.manifest.number;
        // In their order: see `check_line`.
        while self.oldest + KEPT <= number {
            self.bucket.remove(&Manifest::name(self.oldest))?;
            self.oldest += 1;
        }
        let is_gone = |it: &&LeftOut| it.at_once || it.by + KEPT <= number;
        let gone: Vec<_> = self.manifest.left_out.iter().filter(is_gone).cloned().collect();
        erased::clean(&self.bucket, &self.manifest, &gone)?;
        self.manifest.left_out.retain(|it| !gone.contains(it));
        Ok(())
    }
}

/// True if a source has a cursor, which it may have forgotten.
fn has(source: &Source, cursor: Cursor) -> Result<bool> {
    match source.has(cursor) {
        Err(error) if error.kind() == ErrorKind::Forgotten => Ok(false),
        answer => answer,
    }
}

fn class_of(range: &Range) -> u32 {
    (range.bytes / SMALL).checked_ilog2().map_or(0, |class| class / 3 + 1)
}

/// Returns the bytes of a batch.
fn bytes_of(mut batch: Batch) -> Result<Vec<u8>> {
    if let (true, Some(bytes)) = (batch.header.is_empty(), batch.bytes.take()) {
        return Ok(bytes);
    }
    let io = |error| Error::io("can't read what is to be uploaded", error);
    let mut bytes = batch.header;
    for range in &batch.ranges {
        let (begin, mut at) = (bytes.len(), range.from);
        bytes.resize(begin + usize::try_from(range.to - at).unwrap_or(usize::MAX), 0);
        while at < range.to {
            let place = begin + usize::try_from(at - range.from).unwrap_or(usize::MAX);
            let read = range.storage.read_at(at, bytes.get_mut(place..).unwrap_or_default());
            match read.map_err(io)? {
                0 => return Err(io(std::io::ErrorKind::UnexpectedEof.into())),
                count => at += count as u64,
            }
        }
    }
    Ok(bytes)
}

/// A range that isn't in the archive yet.
struct Fresh {
    range: Range,
    bytes: Bytes,
    transactions: u64,
}

impl Fresh {
    /// Reads what a source has after a cursor; `None` if it has nothing.
    fn after(source: &Source, generation: u64, after: Option<Cursor>) -> Result<Option<Self>> {
        let batch = source.after_into(after, LARGE, |count| Some(Vec::with_capacity(count)))?;
        if batch.is_empty() {
            return Ok(None);
        }
        let between = Between { generation, after, next: batch.next, is_seal: batch.is_seal };
        let transactions = batch.transactions;
        let bytes = bytes_of(batch)?;
        let range = Range::of(between, &bytes);
        Ok(Some(Self { range, bytes: bytes.into(), transactions }))
    }
}

/// Returns the error that the archive has what the journal doesn't have.
fn diverged(bucket: &Bucket, source: &Source, newest: &Manifest, end: Cursor) -> Result<Error> {
    let here = source.end()?;
    let is_older = end.txid > here.txid
        && source.has(here)?
        && chain_of(bucket, newest, here.txid)? == Some(here.chain);
    let mut common = 0;
    for range in &newest.ranges {
        match source.has(range.next.0)? {
            true => common = range.next.0.txid.0,
            false => break,
        }
    }
    let message = match is_older {
        true => format!(
            "{}: has transactions up to {}, and {} only up to {}: it is an older copy; restore from the archive instead",
            bucket.name(),
            end.txid,
            source.name(),
            here.txid
        ),
        false => format!(
            "{} and {} differ after transaction {common}; nothing was uploaded: archive to an empty place, or replace what \
             is there (--replace)",
            bucket.name(),
            source.name()
        ),
    };
    Ok(Error::new(ErrorKind::Diverged, message))
}
