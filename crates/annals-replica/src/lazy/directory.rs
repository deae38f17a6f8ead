//! A directory whose files are elsewhere: they are read in blocks, which are fetched when they are needed.
//!
//! Invariants
//! 1. A file is read as it was at the last look: its length is the one from there, and its bytes have that tag.
//! 2. Blocks of the image, but the first, are kept when it gets another tag: a page is verified when it is loaded, and
//!    one that doesn't verify is fetched again. All other blocks belong to one tag.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use annals::{Cursor, Result};
use annals_journal::format::FRAMES_AT;
use annals_storage::bytes::hash;
use annals_storage::sync::lock;
use annals_storage::{Access, Clock as _, Directory, Storage, SystemClock};

use super::cache::{BLOCK, Cache, Key};
use super::fetch::{Fetch, replaced};
use super::ranges::{Contents, Object};
use crate::frames::{JournalFileKind, SegmentStart, head_up_to};

/// The most blocks of one request: 2 MiB.
const PART: u64 = 64;
/// The most requests at the same time, by one reader.
const AT_ONCE: u64 = 4;
/// The most blocks that are fetched ahead of a reader that reads one after the other.
const MOST_AHEAD: u64 = AT_ONCE * PART;

/// The files of a journal elsewhere.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) fetch: Fetch,
    pub(super) cache: Cache,
    /// The name that the journal has here.
    journal: String,
    now: Mutex<Now>,
}

/// The files as of the last look.
#[derive(Debug)]
struct Now {
    newest: Arc<File>,
    image: Option<Arc<File>>,
    kept: BTreeMap<u64, Option<Arc<File>>>,
    contents: Contents,
}

/// A file elsewhere, of one tag.
#[derive(Debug)]
struct File {
    kind: JournalFileKind,
    object: Object,
    extent: Mutex<Extent>,
    /// A random number in place of the tag, if it has none: then nothing proves that a block of an earlier look is its.
    salt: u64,
    /// True if it is known to be another by now.
    is_replaced: AtomicBool,
    ahead: Mutex<Ahead>,
}

/// How far a file goes, which may grow.
#[derive(Clone, Copy, Debug)]
struct Extent {
    len: u64,
    /// The last transaction in it, if it is the newest segment, and the source knows that: then its slots say nothing.
    end: Option<Cursor>,
}

/// How a file was read last.
#[derive(Debug, Default)]
struct Ahead {
    /// The block after the last one that was fetched.
    next: u64,
    /// How many were fetched at once.
    count: u64,
}

/// How the files differ from those of the look before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Not at all.
    Nothing,
    /// The newest segment is longer.
    Grown,
    /// There is another image, or another segment.
    Replaced,
}

impl Now {
    fn new(contents: Contents) -> Self {
        let file = |kind, object: &Object| Arc::new(File::new(kind, object.clone(), None));
        let (newest, end) = (JournalFileKind::Newest, contents.end);
        let kept = contents.kept.iter();
        let kept =
            kept.map(|(&number, it)| (number, Some(file(JournalFileKind::Kept(number), it))));
        Self {
            newest: Arc::new(File::new(newest, contents.newest.clone(), end)),
            image: contents.image.as_ref().map(|it| file(JournalFileKind::Image, it)),
            kept: kept.collect(),
            contents,
        }
    }
}

impl Remote {
    pub(super) fn new(fetch: Fetch, cache: Cache, journal: &str) -> Result<Self> {
        let contents = fetch.ask(|ranges| ranges.look())?;
        Ok(Self { fetch, cache, journal: journal.to_owned(), now: Mutex::new(Now::new(contents)) })
    }

    /// Looks which files there are by now.
    ///
    /// # Errors
    /// Those of the source.
    pub(super) fn look(&self) -> Result<News> {
        let contents = self.fetch.ask(|ranges| ranges.look())?;
        let mut now = lock(&self.now);
        if contents == now.contents && !now.is_replaced() {
            return Ok(News::Nothing);
        }
        let (old, new) = (&now.contents, &contents);
        let is_same = old.newest.path == new.newest.path && new.newest.tag.is_some();
        let has_grown = is_same
            && old.newest.tag == new.newest.tag
            && old.newest.len <= new.newest.len
            && old.image == new.image
            && !now.is_replaced();
        if !has_grown {
            *now = Now::new(contents);
            return Ok(News::Replaced);
        }
        *lock(&now.newest.extent) = Extent { len: contents.newest.len, end: contents.end };
        now.contents = contents;
        Ok(News::Grown)
    }

    /// True if a file was found to be another than at the last look.
    pub(super) fn is_replaced(&self) -> bool {
        lock(&self.now).is_replaced()
    }

    /// Returns the end of the history at the last look, if the source knows it.
    pub(super) fn end(&self) -> Option<Cursor> {
        lock(&self.now).contents.end
    }

    /// Returns the lengths of the image and of all segments that are known.
    pub(super) fn bytes(&self) -> u64 {
        let now = lock(&self.now);
        let kept = now.kept.values().flatten().map(|file| file.len());
        now.newest.len() + now.image.as_ref().map_or(0, |image| image.len()) + kept.sum::<u64>()
    }

    fn file(&self, kind: JournalFileKind) -> io::Result<Option<Arc<File>>> {
        let now = lock(&self.now);
        let JournalFileKind::Kept(number) = kind else {
            let file =
                if kind == JournalFileKind::Image { now.image.as_ref() } else { Some(&now.newest) };
            return Ok(file.map(Arc::clone));
        };
        if let Some(known) = now.kept.get(&number) {
            return Ok(known.as_ref().map(Arc::clone));
        }
        let has_list = !now.contents.kept.is_empty();
        drop(now);
        if has_list {
            return Ok(None);
        }
        let found = self.fetch.ask(|ranges| ranges.kept(number));
        let found = found
            .map_err(|error| io::Error::new(io::ErrorKind::HostUnreachable, error.to_string()))?;
        let found = found.map(|object| Arc::new(File::new(kind, object, None)));
        lock(&self.now).kept.insert(number, found.clone());
        Ok(found)
    }

    /// Reads from a file.
    fn read(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let end = file.len().min(offset.saturating_add(buffer.len() as u64));
        let mut at = offset;
        while at < end {
            let number = at / BLOCK;
            let block = match self.cache.get(file.key(number), file.part(number)) {
                Some(block) => block,
                None => self.load(file, number, end.div_ceil(BLOCK))?,
            };
            let from = place(at - number * BLOCK);
            let count = place(end.min((number + 1) * BLOCK) - at);
            let (to, bytes) = (place(at - offset), block.get(from..from + count));
            match (buffer.get_mut(to..to + count), bytes) {
                (Some(to), Some(bytes)) => to.copy_from_slice(bytes),
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            at += count as u64;
        }
        let count = place(at.saturating_sub(offset));
        if offset < FRAMES_AT {
            self.put_head(file, offset, buffer.get_mut(..count).unwrap_or_default())?;
        }
        Ok(count)
    }

    /// Puts the head of the newest segment, as of its end, over bytes that were read, if the source knows the end.
    fn put_head(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Extent { len, end: Some(end) } = file.extent() else { return Ok(()) };
        let block = match self.cache.get(file.key(0), file.part(0)) {
            Some(block) => block,
            None => self.load(file, 0, 1)?,
        };
        let head = head_up_to(&block, len, end).unwrap_or_default();
        let head = head.get(place(offset)..).unwrap_or_default();
        buffer.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    /// Fetches a block, with those after it that are needed up to `end`, or will be if the file is read in order: all
    /// at the same time. Returns the first.
    fn load(&self, file: &File, first: u64, end: u64) -> io::Result<Arc<[u8]>> {
        if file.is_replaced.load(Ordering::Acquire) {
            return Err(replaced(&self.fetch.ranges.place()));
        }
        let end = self.end_of_load(file, first, end);
        let part = |at: u64| at * BLOCK..((at + PART).min(end) * BLOCK).min(file.len());
        let parts: Vec<_> = (first..end).step_by(place(PART)).map(part).collect();
        let (mut one, mut block) = (None, first);
        for bytes in self.fetch.read_all(&file.object, &parts) {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => {
                    if error.kind() == io::ErrorKind::StaleNetworkFileHandle {
                        file.is_replaced.store(true, Ordering::Release);
                    }
                    match one {
                        // What was fetched ahead may not be needed; else it is fetched again.
                        Some(_) => break,
                        None => return Err(error),
                    }
                }
            };
            for bytes in bytes.chunks(place(BLOCK)) {
                let kept = self.cache.put(file.key(block), bytes);
                one.get_or_insert(kept);
                block += 1;
            }
        }
        lock(&file.ahead).next = block;
        one.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Returns the end of the blocks that are fetched along with a block that isn't here.
    fn end_of_load(&self, file: &File, first: u64, needed: u64) -> u64 {
        let is_here = |block| self.cache.get(file.key(block), file.part(block)).is_some();
        // What is fetched ahead must not evict itself.
        let most = MOST_AHEAD.min(self.cache.room() / 2).max(1);
        let count = {
            let mut ahead = lock(&file.ahead);
            let count = if ahead.next == first { ahead.count * 2 } else { 1 };
            ahead.count = count.max(needed - first).clamp(1, most);
            ahead.count
        };
        let last = (first + count).min(file.len().div_ceil(BLOCK));
        (first + 1..last).find(|&block| is_here(block)).unwrap_or(last)
    }
}

impl Now {
    fn is_replaced(&self) -> bool {
        let kept = self.kept.values().flatten();
        let mut files = kept.chain(&self.image).chain([&self.newest]);
        files.any(|file| file.is_replaced.load(Ordering::Acquire))
    }
}

/// A length or a place in a block or a buffer.
fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl File {
    fn new(kind: JournalFileKind, object: Object, end: Option<Cursor>) -> Self {
        let extent = Mutex::new(Extent { len: object.len, end });
        let salt = if object.tag.is_none() { SystemClock.random() } else { 0 };
        let (is_replaced, ahead) = (AtomicBool::new(false), Mutex::default());
        Self { kind, object, extent, salt, is_replaced, ahead }
    }

    fn extent(&self) -> Extent {
        *lock(&self.extent)
    }

    fn len(&self) -> u64 {
        self.extent().len
    }

    /// Returns how many bytes a block has.
    fn part(&self, block: u64) -> usize {
        place(self.len().saturating_sub(block * BLOCK).min(BLOCK))
    }

    fn key(&self, block: u64) -> Key {
        let Self { kind, object: Object { path, tag, .. }, salt, .. } = self;
        let name = match kind {
            JournalFileKind::Image if block > 0 => "image".to_owned(),
            _ => format!("{path} {tag:?} {salt}"),
        };
        Key { file: hash(name.as_bytes()), block }
    }
}

/// An open file.
#[derive(Debug)]
struct Open {
    remote: Arc<Remote>,
    file: Arc<File>,
}

/// Returns the error of every change.
fn unchangeable() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "a lazy replica can only be read")
}

impl Storage for Open {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.remote.read(&self.file, offset, buffer)
    }

    fn drop_copies(&self, range: Range<u64>) {
        let end = range.end.min(self.file.len()).div_ceil(BLOCK);
        for block in range.start / BLOCK..end {
            self.remote.cache.drop_block(self.file.key(block));
        }
    }

    fn oldest_pin(&self, _roots: Range<u64>) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn is_linked(&self) -> io::Result<bool> {
        let there = self.remote.file(self.file.kind)?;
        Ok(there.is_some_and(|there| Arc::ptr_eq(&there, &self.file)))
    }
}

/// A handle of the directory.
#[derive(Clone, Debug)]
pub(super) struct RemoteDirectory(pub(super) Arc<Remote>);

impl Directory for RemoteDirectory {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        if access == Access::Write {
            return Err(unchangeable());
        }
        let kind = JournalFileKind::of(name, &self.0.journal);
        let file = kind.map(|kind| self.0.file(kind)).transpose()?.flatten();
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(Open { remote: Arc::clone(&self.0), file }))
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn Storage>> {
        Err(unchangeable())
    }

    fn link(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(unchangeable())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let remote = &self.0;
        let newest = remote.file(JournalFileKind::Newest)?;
        let mut kinds = vec![JournalFileKind::Newest];
        kinds.extend(remote.file(JournalFileKind::Image)?.map(|_| JournalFileKind::Image));
        let mut head = vec![0; place(FRAMES_AT)];
        let read = newest.map_or(Ok(0), |newest| remote.read(&newest, 0, &mut head))?;
        let start = SegmentStart::of_header(head.get(..read).unwrap_or_default());
        let number = start.map_or(0, |start| start.number);
        for number in (0..number).rev() {
            match remote.file(JournalFileKind::Kept(number))? {
                Some(_) => kinds.push(JournalFileKind::Kept(number)),
                None => break,
            }
        }
        let mut names: Vec<_> = kinds.into_iter().map(|kind| kind.name(&remote.journal)).collect();
        names.sort();
        Ok(names)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn display(&self, name: &str) -> String {
        let place = self.0.fetch.ranges.place();
        match JournalFileKind::of(name, &self.0.journal) {
            Some(JournalFileKind::Newest) | None => place,
            Some(JournalFileKind::Image) => format!("the image of {place}"),
            Some(JournalFileKind::Kept(number)) => format!("segment {number} of {place}"),
        }
    }
}
