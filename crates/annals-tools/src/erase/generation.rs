//! A journal that is to be written again: what is read of it, and how new segments take its place.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use annals::internals::beside::{Beside, Kind, kind};
use annals::internals::{
    FrameSource, Opened, Past, Watch, Watched, check_end, erasure, open_to_replace, watch,
};
use annals::journal::{Point, SegmentFacts, Survey};
use annals::{Error, Options, Result, Sink};
use annals_journal::format::Header;
use annals_journal::segments::{BEFORE_ERASING, erased_name, erasing_name, kept_name};
use annals_journal::{Frame, Head};
use annals_storage::{Clock, Directory, Hold, Lock, Storage};
use annals_store::image::image_name;

use crate::inspection::scan::scan_verified;

/// A segment as it is.
#[derive(Debug)]
pub(super) struct OldSegment {
    storage: Arc<dyn Storage>,
    shown: String,
    head: Head,
    /// The end of its last commit, or of its seal, if it has one.
    end: u64,
}

impl OldSegment {
    /// Returns its header.
    pub(super) const fn header(&self) -> &Header {
        &self.head.header
    }

    /// Returns the error that it can't be written again.
    pub(super) fn not_rewritten(&self, error: io::Error) -> Error {
        Error::io(format!("{}: can't be rewritten; nothing was changed", self.shown), error)
    }
}

/// Files beside a journal that are made of it: they go with what is taken out of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Removable {
    files: Vec<(String, Kind)>,
    /// What they are called in messages.
    pub(super) removed: Vec<String>,
    /// Files with names of such ones that aren't proven to be of this journal. They stay.
    pub(super) unproven: Vec<String>,
}

/// Makes the file of a new segment, by the place of the old one.
type Create<'c> = dyn FnMut(usize) -> Result<Arc<dyn Storage>> + 'c;

/// A journal whose segments are to be replaced.
#[derive(Debug)]
pub(super) struct Generation {
    directory: Arc<dyn Directory>,
    name: String,
    /// The oldest first.
    segments: Vec<OldSegment>,
    past: Past,
    end: Point,
    last_clock_time: i64,
    watch: Option<Watch>,
}

impl Generation {
    /// Opens a journal to read it: takes no lock, and writes nothing.
    ///
    /// # Errors
    /// As [`scan`](crate::scan).
    pub(super) fn look(
        options: &Options,
        directory: &Arc<dyn Directory>,
        name: &str,
    ) -> Result<Self> {
        let directory = of_journal(directory, name);
        let Opened { storage, shown, past, witnesses } =
            Opened::new(&*directory, name, Past::whole)?;
        let watch = watch(options);
        let watched = Watched::new(&*storage, watch.as_ref());
        let source = FrameSource { past: None, storage: &watched, shown: &shown };
        let survey = source.verify()?;
        check_end(&witnesses, &survey, &*directory, name, &*storage)?;
        Ok(Self::new(options, directory, name, storage, past?, &survey))
    }

    /// Opens a journal alone, recovers it, and ends what was interrupted.
    ///
    /// # Errors
    /// As [`Options::open_in`]; `Unsupported`: a raw device.
    pub(super) fn hold(
        options: &Options,
        directory: &Arc<dyn Directory>,
        name: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self> {
        let directory = of_journal(directory, name);
        let (storage, survey) = open_to_replace(options, &directory, name, clock)?;
        let past = Past::whole(&*directory, name, &survey.head.header)?;
        Ok(Self::new(options, directory, name, storage, past, &survey))
    }

    fn new(
        options: &Options,
        directory: Arc<dyn Directory>,
        name: &str,
        storage: Arc<dyn Storage>,
        past: Past,
        survey: &Survey,
    ) -> Self {
        let kept = past.segments().iter().map(|kept| OldSegment {
            storage: Arc::clone(&kept.storage),
            shown: kept.shown.clone(),
            head: kept.head.clone(),
            end: kept.len,
        });
        let (head, end) = (survey.head.clone(), survey.end);
        let shown = directory.display(name);
        let newest = OldSegment { storage, shown, head, end: end.position };
        Self {
            segments: kept.chain([newest]).collect(),
            directory,
            name: name.to_owned(),
            past,
            end,
            last_clock_time: survey.last_clock_time,
            watch: watch(options),
        }
    }

    /// Returns what the journal is called in messages.
    pub(super) fn shown(&self) -> String {
        self.directory.display(&self.name)
    }

    /// Returns its segments, the oldest first.
    pub(super) fn segments(&self) -> &[OldSegment] {
        &self.segments
    }

    /// Returns what is known of the segments without reading them.
    pub(super) fn facts(&self) -> Vec<SegmentFacts> {
        self.past.facts((self.end.position, self.end.txid.0))
    }

    /// Returns the time of its last commit that the clock gave.
    pub(super) const fn last_clock_time(&self) -> i64 {
        self.last_clock_time
    }

    /// Reads the whole history into a sink.
    ///
    /// # Errors
    /// As [`scan`](crate::scan).
    pub(super) fn scan(&self, sink: &mut impl Sink) -> Result<()> {
        let Some(newest) = self.segments.last() else { return Ok(()) };
        let watched = Watched::new(&*newest.storage, self.watch.as_ref());
        let OldSegment { shown, head, end, .. } = newest;
        let source = FrameSource { past: Some(&self.past), storage: &watched, shown };
        scan_verified(&source, head, *end, sink)
    }

    /// Reads the frames of the segment at a place.
    ///
    /// # Errors
    /// Those of `visit`; `Corrupt`; `Io`; `Cancelled`.
    pub(super) fn read(
        &self,
        place: usize,
        mut visit: &mut dyn FnMut(&Frame<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(OldSegment { storage, shown, head, end }) = self.segments.get(place) else {
            return Ok(());
        };
        let watched = Watched::new(&**storage, self.watch.as_ref());
        watched.read_again();
        let source = FrameSource { past: None, storage: &watched, shown };
        source.read_to(head, *end, &mut visit).map(drop)
    }

    /// Returns the files beside the journal that are proven to be made of it, but for its kept segments, and what an
    /// earlier replacement needs that isn't finished.
    ///
    /// # Errors
    /// `Invalid`: a file has the name and the id of a segment, and isn't part of the history that is known, so nobody
    /// can say what it holds; `Io`.
    pub(super) fn removable(&self) -> Result<Removable> {
        let io = |error| Error::io(format!("{}: its directory can't be read", self.shown()), error);
        let directory = &*self.directory;
        let tails = tails(directory, &self.name).map_err(io)?;
        let header = self.past.header();
        let known = self.known(&tails)?;
        let found = Beside::find(directory, &self.name, &header.journal_id, &known).map_err(io)?;
        let is_known = |number| self.segments.iter().any(|old| old.header().segment == number);
        let is_stray = |kind: &Kind| match kind {
            Kind::Segment(number) => *number < header.segment && !is_known(*number),
            _ => false,
        };
        if let Some((stray, _)) = found.own.iter().find(|(_, kind)| is_stray(kind)) {
            return Err(Error::invalid(format!(
                "{}: isn't connected to the known history, so its contents are unknown: move it elsewhere, or \
                 remove it",
                directory.display(stray)
            )));
        }
        let files = erasure::removable(&found, header);
        Ok(Removable {
            removed: files.iter().map(|(name, _)| directory.display(name)).collect(),
            unproven: found.unproven.iter().map(|name| directory.display(name)).collect(),
            files,
        })
    }

    /// Returns which of the points after which tails were cut off are in the history.
    fn known(&self, tails: &BTreeSet<(u64, u64)>) -> Result<BTreeSet<(u64, u64)>> {
        let mut known = BTreeSet::new();
        for (place, old) in self.segments.iter().enumerate() {
            let start = old.head.start();
            let next = self.segments.get(place + 1).map(|next| next.header().first_txid);
            let txids = start.txid.0..=next.unwrap_or(u64::MAX);
            if tails.iter().any(|(txid, _)| txids.contains(txid)) {
                known.insert((start.txid.0, start.chain));
                self.read(place, &mut |frame| {
                    let point = (frame.header.txid, frame.chain);
                    if frame.header.is_commit() && tails.contains(&point) {
                        known.insert(point);
                    }
                    Ok(())
                })?;
            }
        }
        Ok(known)
    }

    /// Puts new segments in the place of old ones, and removes what is removable: steps 1 to 5. `write` makes
    /// the segments, from some place on up to the newest.
    ///
    /// # Errors
    /// Those of `write`; `Io`. Then nothing was changed, unless the error says otherwise.
    pub(super) fn replace(
        &self,
        id: u64,
        removable: &Removable,
        overwrite: bool,
        write: &mut dyn FnMut(&mut Create<'_>) -> Result<()>,
    ) -> Result<()> {
        let (directory, name) = (&*self.directory, &*self.name);
        // What an earlier attempt left takes space that this one needs.
        for (name, _) in removable.files.iter().filter(|(_, of)| *of == Kind::Temporary) {
            erasure::remove(directory, name, overwrite)
                .map_err(|error| self.not_replaced(error))?;
        }
        let mut made = Vec::new();
        let ready = self.prepare(id, removable, overwrite, &mut made, write);
        let remove_made = || made.iter().for_each(|name| drop(directory.remove(name)));
        let newest = ready.inspect_err(|_| remove_made())?;
        let published = directory.rename(&erased_name(name, id), name);
        if let Err(error) = published.and_then(|()| directory.flush()) {
            // A later flush would prove nothing.
            let before = format!("{name}{BEFORE_ERASING}{id:016x}");
            if directory.rename(&before, name).and_then(|()| directory.flush()).is_ok() {
                remove_made();
                return Err(self.not_replaced(error));
            }
            let message = "it isn't known whether the values are erased: open it for writing once more, and look";
            return Err(Error::io(format!("{}: {message}", self.shown()), error));
        }
        newest.renamed(name);
        let header = Head::read(&*newest, &self.shown())?.header;
        erasure::finish_published(directory, name, &header)
    }

    /// Does steps 1 and 2. Returns the newest segment, with its lock.
    fn prepare(
        &self,
        id: u64,
        removable: &Removable,
        overwrite: bool,
        made: &mut Vec<String>,
        write: &mut dyn FnMut(&mut Create<'_>) -> Result<()>,
    ) -> Result<Arc<dyn Storage>> {
        let (directory, name) = (&*self.directory, &*self.name);
        let before = format!("{name}{BEFORE_ERASING}{id:016x}");
        let io = |error| self.not_replaced(error);
        let image = image_name(name);
        let mut listed: Vec<_> = removable.files.iter().map(|(name, _)| name.clone()).collect();
        let aside = listed.contains(&image).then(|| format!("{before}-image"));
        listed.extend(aside.clone());
        made.push(erasing_name(name, id));
        let marker = directory.create(&erasing_name(name, id)).map_err(io)?;
        let list = erasure::List { names: listed, overwrite };
        erasure::write(&*marker, &self.past.header().journal_id, &list).map_err(io)?;
        let mut newest = None;
        write(&mut |place| {
            let kept = self.past.segments().get(place).map(|kept| kept.header().segment);
            let segment = kept.map_or_else(|| name.to_owned(), |number| kept_name(name, number));
            made.push(erased_name(&segment, id));
            let file = directory.create(&erased_name(&segment, id)).map_err(io)?;
            if kept.is_none() {
                if !file.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
                    return Err(io(io::ErrorKind::ResourceBusy.into()));
                }
                newest = Some(Arc::clone(&file));
            }
            Ok(file)
        })?;
        directory.flush().map_err(io)?;
        // Should it not come to its end, the old one gets the path back.
        directory.link(name, &before).map_err(io)?;
        made.push(before);
        // Overwritten where it is, the image would be a damaged one after a crash.
        if let Some(aside) = aside {
            directory.rename(&image, &aside).map_err(io)?;
            made.push(aside);
        }
        directory.flush().map_err(io)?;
        newest.ok_or_else(|| io(io::ErrorKind::NotFound.into()))
    }

    fn not_replaced(&self, error: io::Error) -> Error {
        Error::io(format!("{}: can't be rewritten", self.shown()), error)
    }
}

fn of_journal(directory: &Arc<dyn Directory>, name: &str) -> Arc<dyn Directory> {
    directory.for_journal(name, None).unwrap_or_else(|| Arc::clone(directory))
}

/// Returns the points after which tails beside a journal were cut off, as their names say.
fn tails(directory: &dyn Directory, journal: &str) -> io::Result<BTreeSet<(u64, u64)>> {
    let names = directory.list()?;
    let points = names.iter().filter_map(|found| match kind(found, journal)? {
        Kind::Tail(txid, chain) => Some((txid, chain)),
        _ => None,
    });
    Ok(points.collect())
}
