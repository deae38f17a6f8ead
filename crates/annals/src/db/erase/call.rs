//! Erasing, as a program calls it.

use crate::db::acquire;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use annals_schema::Schema;

use crate::db::beside::{self, Beside, Kind};
use crate::db::careful::Careful;
use crate::db::erase::report::{Erase, Erased};
use crate::db::erase::search::{Others, Search, Target, Values};
use crate::db::erase::write::{MakeMark, Mark, Old, Writing};
use crate::db::erase::{marker, replace};
use crate::db::options::{Options, locate};
use crate::db::progress::Watched;
use crate::db::replay::older::{Opened, Past};
use crate::db::replay::scan;
use crate::db::replay::witness::{check_end, image_witnesses};
use crate::journal::segments::{self, Kept, Maker, erasing_name};
use crate::journal::{Carried, Erasure, Frame, FrameReader, Head, Recovery, Rule, Survey, refuse};
use crate::storage::{Clock, Directory, Hold, Lock, Storage, SystemClock};
use crate::{Error, ErrorKind, Result};

/// How often it starts over when the journal changes under its hands.
const TRIES: usize = 100;

/// A journal that is to be read, and perhaps written.
struct Held {
    storage: Arc<dyn Storage>,
    shown: String,
    past: Past,
    head: Head,
    /// The end of the last commit.
    end: u64,
    last_clock_time: i64,
}

/// The plan of an erasure: the found values, and the segments to write.
struct Plan {
    search: Search,
    target: Target,
    erased: Erased,
    /// The place of the first rewritten segment.
    first: usize,
    /// The files that are removed.
    removable: Vec<(String, Kind)>,
}

/// Erases values from history. All segments of the journal, from the first that holds one of them, are rewritten
/// without them, with other chains. All files that derive from the journal, such as the image and saved tails, are
/// removed. The values are null from then on, at all times. Nothing else changes; but one transaction is added, which
/// marks the erasure.
///
/// Comments stay unless they are to go, too; the schema and other rows stay, also where they say the same. A field's
/// default, and zeros that `insert_vector` made, were never written to the row, and stay. A process with the old
/// files open continues to see them. File systems and disks may keep the bytes of removed files, unless they are to
/// be overwritten and the medium does that in place; copies elsewhere aren't known here.
///
/// A crash leaves the old history or the new one, as a whole; the next opening of the journal for writing removes the
/// remaining files.
///
/// Cost: reads all history once, the rewritten part twice, and with blobs everything once more; as much free space as
/// the rewritten part; memory for a few frames.
///
/// # Errors
/// `NotFound`: no such file, table or field, or nothing to erase; `Busy`: another process, or this, has it open
/// for writing; `Invalid`: a file beside it has the name of a segment that isn't one of this history;
/// `Unsupported`: a raw device; `Corrupt`; `Io`. Then nothing was changed, unless an error says otherwise.
pub fn erase(options: &Options, path: impl AsRef<Path>, what: &Erase) -> Result<Erased> {
    let (directory, name) = locate(path.as_ref())?;
    erase_in(options, &directory, &name, &(Arc::new(SystemClock) as _), what)
}

/// As [`erase`], in any directory, with any clock.
///
/// # Errors
/// As [`erase`].
pub fn erase_in(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    clock: &Arc<dyn Clock>,
    what: &Erase,
) -> Result<Erased> {
    let own = directory.for_journal(name, None);
    let directory = own.as_ref().unwrap_or(directory);
    let held = match what.dry_run {
        true => look(options, &**directory, name)?,
        false => hold(options, &**directory, name, clock)?,
    };
    let plan = plan(options, (&**directory, name), &held, what)?;
    match what.dry_run {
        true => Ok(plan.erased),
        false => carry_out(options, (&**directory, name), &**clock, &held, plan, what),
    }
}

/// Opens a journal to read it.
fn look(options: &Options, directory: &dyn Directory, name: &str) -> Result<Held> {
    let Opened { storage, shown, past, witnesses } = Opened::new(directory, name, Past::whole)?;
    let watched = Watched::new(&*storage, options.watch.as_ref());
    let (survey, ()) = scan::survey_moving(&watched, &shown, || Ok(()), |(), _, _| Ok(()))
        .map_err(|error| watched.explain(error, &shown))?;
    check_end(&witnesses, &survey, directory, name, &*storage)?;
    Ok(Held::new(storage, shown, past?, &survey))
}

/// Opens a journal alone, recovers it, and completes interrupted operations.
fn hold(
    options: &Options,
    directory: &dyn Directory,
    name: &str,
    clock: &Arc<dyn Clock>,
) -> Result<Held> {
    let shown = directory.display(name);
    let options = options.clone().create(false).shared(false);
    for _ in 0..TRIES {
        let storage = acquire::acquire(&options, directory, name, clock)?.storage;
        if storage.has_fixed_len() {
            let message = format!("{shown}: a device can't be written anew: copy what it holds");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let watched = Watched::new(&*storage, options.watch.as_ref());
        let rule = Rule::new(options.recovery);
        let looks_wrong = scan::looks_wrong;
        let (survey, ()) =
            scan::survey(&watched, &shown, rule, || Ok(()), looks_wrong, |(), _, _| Ok(()))
                .map_err(|error| watched.explain(error, &shown))?;
        // The image, which erasing removes, may have data that the journal lost.
        let witnesses = image_witnesses(directory, name, &survey.head);
        check_end(&witnesses, &survey, directory, name, &*storage)?;
        replace::finish(directory, name, &survey.head.header)?;
        if let Some(seal) = &survey.sealed {
            refuse(&shown, &survey, options.recovery)?;
            let by = Maker { clock: &**clock, shared: false };
            segments::finish(directory, name, &*storage, &survey, seal, by)?;
            continue;
        }
        let recovery: Recovery = options.recovery;
        let careful = Careful { directory, name, survey: &survey, recovery, others: false };
        careful.settle(&options, &*storage, false, clock.secret())?;
        let past = Past::whole(directory, name, &survey.head.header)?;
        return Ok(Held::new(storage, shown, past, &survey));
    }
    let message = format!("{shown}: it is restarted again and again; try later");
    Err(Error::new(ErrorKind::Busy, message))
}

/// Reads all of history, and the files beside it.
fn plan(
    options: &Options,
    (directory, name): (&dyn Directory, &str),
    held: &Held,
    what: &Erase,
) -> Result<Plan> {
    let io = |error| Error::io(format!("{}: its directory can't be read", held.shown), error);
    let mut search = Search::new(what, beside::tails(directory, name).map_err(io)?);
    held.read(options, &mut search, Search::begin, |search, frame, is_repeated| {
        search.frame(frame, is_repeated)
    })?;
    let (mut target, found, left) =
        search.target(what).map_err(|error| error.within(format_args!("{}", held.shown)))?;
    let blobs: BTreeSet<_> = found.iter().flat_map(|(_, values)| &values.blobs).copied().collect();
    let Values { segment: mut first, mut txids, .. } =
        found.first().map(|(_, values)| values.clone()).unwrap_or_default();
    for (_, values) in &found {
        first = first.min(values.segment);
        txids = (txids.0.min(values.txids.0), txids.1.max(values.txids.1));
    }
    if !blobs.is_empty() {
        let mut others = Others::new(&target, blobs);
        let frame = |others: &mut Others<'_>, frame: &Frame<'_>, _| others.frame(frame);
        held.read(options, &mut others, Others::begin, frame)?;
        // The bytes of a blob may be in a segment before that of the first value that refers to it.
        first = others.first.map_or(first, |bytes| bytes.min(first));
        target.blobs = others.blobs;
    }
    let comments = search.comments(what, (&mut target, &found));
    if let Some(comments) = &comments {
        first = if found.is_empty() { comments.segment } else { first.min(comments.segment) };
        let both = (txids.0.min(comments.txids.0), txids.1.max(comments.txids.1));
        txids = if found.is_empty() { comments.txids } else { both };
    }
    let header = &held.head.header;
    let beside = Beside::find(directory, name, &header.journal_id, &search.known);
    let beside = beside.map_err(io)?;
    held.refuse_stray(directory, &beside)?;
    let removable = replace::removable(&beside, header);
    let heads = held.heads();
    let last = search.last.map_or(0, |last| last.txid);
    // The state that history begins with is nowhere else: its transaction has another chain, too.
    let rewritten = heads.get(first).map_or(1, |(header, _)| match first {
        0 => header.first_txid,
        _ => header.first_own_txid(),
    });
    let erased = Erased {
        fields: found.iter().map(|(name, _)| name.clone()).collect(),
        values: found.iter().map(|(_, values)| values.count).sum(),
        comments: comments.map_or(0, |comments| comments.count),
        blobs: target.blobs.len() as u64,
        held: txids,
        rewritten: (rewritten, last),
        segments: (heads.len() - first) as u64,
        bytes: heads.iter().skip(first).map(|(_, bytes)| bytes).sum(),
        mark: last + 1,
        left,
        removed: removable.iter().map(|(name, _)| directory.display(name)).collect(),
        unproven: beside.unproven.iter().map(|name| directory.display(name)).collect(),
    };
    Ok(Plan { search, target, erased, first, removable })
}

/// Writes the new history, and replaces the old one.
fn carry_out(
    options: &Options,
    (directory, name): (&dyn Directory, &str),
    clock: &dyn Clock,
    held: &Held,
    mut plan: Plan,
    what: &Erase,
) -> Result<Erased> {
    let io = |error| Error::io(format!("{}: can't be written anew", held.shown), error);
    // Orphans of an earlier erasure that didn't reach step 3 take space that this one needs.
    plan.remove(directory, Kind::Temporary, what.overwrite).map_err(io)?;
    let id = clock.random();
    let mut made = Vec::new();
    let written =
        write(options, (directory, name), (clock, id), held, (&mut plan, what), &mut made);
    let before = replace::before_name(name, id);
    let ready = written.and_then(|newest| {
        // If it is interrupted, the old one is renamed back.
        directory.link(name, &before).map_err(io)?;
        made.push(before.clone());
        let removed = plan.remove(directory, Kind::Cache, what.overwrite);
        removed.and_then(|()| directory.flush()).map_err(io)?;
        Ok(newest)
    });
    let remove_made = || made.iter().for_each(|name| drop(directory.remove(name)));
    let newest = ready.inspect_err(|_| remove_made())?;
    let published = directory.rename(&replace::new_name(name, None, id), name);
    if let Err(error) = published.and_then(|()| directory.flush()) {
        // A later flush would prove nothing.
        return match directory.rename(&before, name).and_then(|()| directory.flush()) {
            Ok(()) => {
                remove_made();
                Err(io(error))
            }
            Err(_) => Err(Error::io(
                format!(
                    "{}: it isn't known whether the values are erased: open it for writing once more, and \
                     look",
                    held.shown
                ),
                error,
            )),
        };
    }
    newest.renamed(name);
    let header = Head::read(&*newest, &held.shown)?.header;
    replace::finish_published(directory, name, &header)?;
    Ok(plan.erased)
}

/// Writes all segments again, under other names, and returns the newest, with its lock.
fn write(
    options: &Options,
    (directory, name): (&dyn Directory, &str),
    (clock, id): (&dyn Clock, u64),
    held: &Held,
    (plan, what): (&mut Plan, &Erase),
    made: &mut Vec<String>,
) -> Result<Arc<dyn Storage>> {
    let io = |error| Error::io(format!("{}: can't be written anew", held.shown), error);
    let create = |made: &mut Vec<String>, name: String| {
        let created = directory.create(&name).map_err(io);
        made.push(name);
        created
    };
    let marker = create(made, erasing_name(name, id))?;
    let names: Vec<_> = plan.removable.iter().map(|(name, _)| name.clone()).collect();
    let list = marker::List { names, overwrite: what.overwrite };
    marker::write(&*marker, &held.head.header.journal_id, &list).map_err(io)?;
    let segments = held.segments();
    let schema = plan.search.schemas.get(plan.first);
    let ends = held.past.facts((held.end, plan.erased.rewritten.1));
    let mut writing = Writing {
        target: &plan.target,
        clock,
        id,
        wanted: ends
            .iter()
            .map(|facts| facts.last_txid)
            .chain(plan.search.marked.clone())
            .collect(),
        unwritten: BTreeSet::new(),
        schema: schema.map(|schema| Schema::clone(schema)).unwrap_or_default(),
        previous: None,
        chains: Vec::new(),
    };
    let mark = |chains: &[Carried]| plan.mark(chains, held, clock, what);
    let mut newest = Arc::clone(&held.storage);
    for (place, old) in segments.iter().enumerate().skip(plan.first) {
        let is_newest = place + 1 == segments.len();
        let number = (!is_newest).then_some(old.head.header.segment);
        newest = create(made, replace::new_name(name, number, id))?;
        if is_newest && !newest.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
            return Err(io(std::io::ErrorKind::ResourceBusy.into()));
        }
        writing.unwritten = plan.search.unwritten(place, plan.target.table);
        let watched = Watched::new(&*old.storage, options.watch.as_ref());
        watched.read_again();
        let mark = if is_newest { Some(&mark as MakeMark<'_>) } else { None };
        writing
            .segment(old, &*newest, &watched, mark)
            .map_err(|error| watched.explain(error, &old.shown))?;
    }
    directory.flush().map_err(io)?;
    Ok(newest)
}

impl Plan {
    /// Removes the files of a kind.
    fn remove(
        &self,
        directory: &dyn Directory,
        kind: Kind,
        overwrite: bool,
    ) -> std::io::Result<()> {
        for (name, _) in self.removable.iter().filter(|(_, of)| *of == kind) {
            if overwrite {
                replace::overwrite_file(directory, name)?;
            }
            directory.remove(name)?;
        }
        Ok(())
    }

    fn mark(&self, chains: &[Carried], held: &Held, clock: &dyn Clock, what: &Erase) -> Mark {
        let (first_txid, last) = self.erased.rewritten;
        let Target { table, row, .. } = self.target;
        let single = self.target.fields.iter().next().copied().filter(|_| what.field.is_some());
        let fields = match &what.field {
            Some(field) => format!(", field {field}"),
            None => String::new(),
        };
        Mark {
            erasure: Erasure {
                txid: last + 1,
                table,
                row,
                field: single,
                first_txid,
                chains: chains.to_vec(),
            },
            comment: format!("erased: table {}, row {}{fields}", what.table, row.0),
            time: clock.now().max(held.last_clock_time),
        }
    }
}

impl Held {
    fn new(storage: Arc<dyn Storage>, shown: String, past: Past, survey: &Survey) -> Self {
        let (head, end) = (survey.head.clone(), survey.end.position);
        Self { storage, shown, past, head, end, last_clock_time: survey.last_clock_time }
    }

    /// Refuses a file that has the name and the id of a segment, and isn't part of the history that is known.
    fn refuse_stray(&self, directory: &dyn Directory, beside: &Beside) -> Result<()> {
        let known: Vec<_> = self.past.segments().iter().map(|k| k.header().segment).collect();
        match replace::find_stray(beside, &known, self.head.header.segment) {
            None => Ok(()),
            Some(stray) => Err(Error::invalid(format!(
                "{}: isn't connected to the history that is known, so it can't be told what it holds: move it \
                 elsewhere, or remove it",
                directory.display(&stray)
            ))),
        }
    }

    /// Returns the headers of all segments, the oldest first, and how many bytes they have.
    fn heads(&self) -> Vec<(crate::journal::format::Header, u64)> {
        let kept = self.past.segments().iter().map(|kept| (kept.header(), kept.len));
        kept.chain([(self.head.header, self.end)]).collect()
    }

    fn segments(&self) -> Vec<Old> {
        let kept = self.past.segments().iter().map(|kept| Old {
            storage: Arc::clone(&kept.storage),
            shown: kept.shown.clone(),
            head: kept.head.clone(),
            end: kept.len,
        });
        let newest = Old {
            storage: Arc::clone(&self.storage),
            shown: self.shown.clone(),
            head: self.head.clone(),
            end: self.end,
        };
        kept.chain([newest]).collect()
    }

    /// Reads all frames that count; `visit` also gets whether a frame only repeats the state.
    fn read<V>(
        &self,
        options: &Options,
        visitor: &mut V,
        begin: impl Fn(&mut V, &crate::journal::format::Header),
        visit: impl Fn(&mut V, &Frame<'_>, bool) -> Result<()>,
    ) -> Result<()> {
        self.past.read(
            options.watch.as_ref(),
            visitor,
            |visitor, kept: &Kept| begin(visitor, &kept.header()),
            |visitor, frame, (_, is_repeated)| visit(visitor, frame, is_repeated),
        )?;
        begin(visitor, &self.head.header);
        let watched = Watched::new(&*self.storage, options.watch.as_ref());
        let io = |error| {
            let error = Error::io(format!("{}: can't read the journal", self.shown), error);
            watched.explain(error, &self.shown)
        };
        let mut reader = FrameReader::new(&watched, self.head.hash, self.head.start(), self.end)
            .confirming(&self.head.slots);
        while let Some(frame) = reader.next().map_err(io)? {
            visit(visitor, &frame, self.past.is_repeated(&frame))?;
        }
        match reader.position() == self.end {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "{}: what verified at position {} a moment ago doesn't any more: try again, and check the \
                 disk",
                self.shown,
                reader.position()
            ))),
        }
    }
}
