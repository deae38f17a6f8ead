//! A place that serves the files of a database by ranges, with its faults.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::{Error, ErrorKind, Options, Result};
use annals_replica::lazy::{Contents, Object, Piece};
use annals_replica::{Fetching, Lazy, Patience, Ranges};
use annals_storage::{Clock as _, SystemClock};

/// Files in a folder that are read by ranges, as a web server sends them; and its faults.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Part of each tag, as the time of a change is.
    pub(crate) edition: AtomicU64,
    /// So many further answers are cut off.
    pub(crate) cuts: AtomicU64,
    /// A byte that is flipped on the way: in which file, where, and how often.
    pub(crate) flip: Mutex<Option<(&'static str, u64, u64)>>,
    /// True if nothing answers.
    pub(crate) is_down: AtomicBool,
    /// True if it has no tags.
    pub(crate) is_untagged: AtomicBool,
    pub(crate) traffic: Traffic,
}

/// The requests for ranges.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// How long each takes, in milliseconds.
    pub(crate) millis: AtomicU64,
    pub(crate) requests: AtomicU64,
    now: AtomicU64,
    /// The most at the same time.
    pub(crate) most: AtomicU64,
    /// How often one began while there was no other: a round trip that was waited for.
    pub(crate) rounds: AtomicU64,
}

impl Traffic {
    fn pass(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let before = self.now.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(before + 1, Ordering::SeqCst);
        self.rounds.fetch_add(u64::from(before == 0), Ordering::SeqCst);
        SystemClock.pause(Duration::from_millis(self.millis.load(Ordering::SeqCst)));
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            edition: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            flip: Mutex::default(),
            is_down: AtomicBool::new(false),
            is_untagged: AtomicBool::new(false),
            traffic: Traffic::default(),
        })
    }

    fn find(&self, suffix: &str) -> Option<Object> {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        let len = std::fs::metadata(&path).ok()?.len();
        let edition = self.edition.load(Ordering::SeqCst);
        let is_tagged = !self.is_untagged.load(Ordering::SeqCst);
        let tag = is_tagged.then(|| format!("{edition} {len}"));
        Some(Object { path: path.into_string().expect("a path"), len, tag })
    }

    fn answer(&self) -> Result<()> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unreachable, "nobody answers")),
            false => Ok(()),
        }
    }
}

impl Ranges for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn look(&self) -> Result<Contents> {
        self.answer()?;
        let newest = self.find("").ok_or_else(|| Error::new(ErrorKind::NotFound, "no journal"))?;
        Ok(Contents { image: self.find("-image"), newest, kept: BTreeMap::new(), end: None })
    }

    fn kept(&self, number: u64) -> Result<Option<Object>> {
        self.answer()?;
        Ok(self.find(&format!("-segment-{number:06}")))
    }

    fn read(&self, object: &Object, range: Range<u64>) -> Result<Piece> {
        self.answer()?;
        self.traffic.pass();
        let suffix = object.path.strip_prefix(&self.place()).expect("a file beside it");
        let now = self.find(suffix);
        if object.tag.is_some() && now.and_then(|now| now.tag) != object.tag {
            return Ok(Piece::Replaced);
        }
        let all = std::fs::read(&object.path).expect("a file");
        let (from, to) =
            (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        let Some(bytes) = all.get(from..to) else { return Ok(Piece::Replaced) };
        let mut bytes = bytes.to_vec();
        let mut flip = self.flip.lock().unwrap();
        if let Some((of, at, left)) = &mut *flip
            && *of == suffix
            && *left > 0
            && range.contains(at)
        {
            bytes[usize::try_from(*at - range.start).unwrap()] ^= 4;
            *left -= 1;
        }
        if self.cuts.load(Ordering::SeqCst) > 0 {
            self.cuts.fetch_sub(1, Ordering::SeqCst);
            bytes.truncate(bytes.len() / 2);
        }
        Ok(Piece::Bytes(bytes))
    }
}

/// A patience that a test can wait for.
pub(crate) fn short() -> Fetching {
    let patience =
        Patience { deadline: Duration::from_millis(50), pause: Duration::from_millis(1) };
    Fetching { patience, ..Fetching::default() }
}

/// Opens a lazy replica that keeps nothing on disk.
pub(crate) fn open(ranges: &Arc<Folder>) -> Result<Lazy> {
    Lazy::in_memory(Arc::clone(ranges) as Arc<dyn Ranges>, &Options::new(), short())
}
