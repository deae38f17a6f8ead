//! Past states: a replay from the nearest earlier root of the image, or from the beginning.
//!
//! ```text
//! 1. which transaction a moment means                     (the history index, or a look at the journal)
//! 2. which segment of the journal has it
//! 3. the nearest root of the image before it, pinned      (a key frame, or one of the two on disk)
//! 4. replay from there up to that transaction
//! 5. the later commands of the schema, so that the program's types fit
//! ```
//!
//! A past state is a separate store: it shares nothing with the present one. It pins the root that it lies over, and
//! no segment.

use std::sync::Arc;

use annals_schema::{Command, OnDelete, RowId, Txid, Type, Value};

use crate::db::follow::opening::{OpenedRoot, root_before};
use crate::db::follow::segments::{Past, Since};
use crate::db::follow::source::FrameSource;
use crate::db::follow::state::Replay;
use crate::db::present::segment::JournalFile;
use crate::db::present::snapshot::{Published, Snapshot};
use crate::db::progress::{Watch, Watched};
use crate::image::image_name;
use crate::journal::format::Header;
use crate::journal::segments::{Kept, kept_name};
use crate::journal::{Head, Point};
use crate::storage::{Clock, Storage};
use crate::store::{Store, View};
use crate::{Error, ErrorKind, Result};

/// Through which schema the past is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Through {
    /// The present one, by the numbers of fields: later tables are empty, and later fields have their default.
    Present,
    /// The one of that time.
    Then,
}

/// The present, from which the past is read.
pub(in crate::db) struct Present<'p> {
    pub(in crate::db) published: Arc<Published>,
    pub(in crate::db) clock: &'p dyn Clock,
    /// How much of the image may be kept in memory, in bytes.
    pub(in crate::db) budget: u64,
    /// The callback that may stop it, if there is one.
    pub(in crate::db) watch: Option<Watch>,
}

/// A segment that has a transaction.
struct Part {
    storage: Arc<dyn Storage>,
    head: Head,
    /// Its name in the directory, and in messages.
    name: String,
    shown: String,
    /// The end up to which to read.
    end: u64,
}

impl Present<'_> {
    /// Returns the whole state after a transaction.
    pub(in crate::db) fn after(&self, txid: u64, through: Through) -> Result<Snapshot> {
        let (view, Since { segment, point }) = self.state_of(txid, through)?;
        let file = self.file().ending_in(segment)?;
        Ok(Snapshot::new(Arc::new(Published { view, point, file })))
    }

    /// Returns a view of the state as of the end of a transaction.
    pub(in crate::db) fn view_of(&self, txid: u64, through: Through) -> Result<Arc<View>> {
        self.state_of(txid, through).map(|(view, _)| view)
    }

    fn state_of(&self, txid: u64, through: Through) -> Result<(Arc<View>, Since)> {
        let part = self.part_with(txid)?;
        loop {
            let (store, point) = self.replayed(&part, txid)?;
            let view = match through {
                Through::Then => Ok(Arc::clone(store.published())),
                Through::Present => self.adapted(store),
            };
            match view {
                // From another root, then.
                Err(error) if error.kind() == ErrorKind::PageLost => {}
                view => {
                    let segment = part.head.header.segment;
                    return Ok((view?, Since { segment, point }));
                }
            }
        }
    }

    /// Returns the state as of the end of a transaction, with the schema of that time, and its position in the
    /// journal.
    pub(in crate::db) fn then(&self, txid: u64) -> Result<(Arc<View>, Since)> {
        let part = self.part_with(txid)?;
        let (store, point) = self.replayed(&part, txid)?;
        let since = Since { segment: part.head.header.segment, point };
        Ok((Arc::clone(store.published()), since))
    }

    fn file(&self) -> &Arc<JournalFile> {
        &self.published.file
    }

    /// Returns the file that was written when the present was published.
    fn newest(&self) -> Result<Part> {
        let file = self.file();
        Ok(Part {
            storage: Arc::clone(&file.storage),
            head: Head::read(&*file.storage, &file.name)?,
            name: file.journal.clone(),
            shown: file.name.clone(),
            end: self.published.point.position,
        })
    }

    /// Returns the segment that has a transaction.
    fn part_with(&self, txid: u64) -> Result<Part> {
        let file = self.file();
        let mut part = self.newest()?;
        loop {
            let header = part.head.header;
            if txid >= header.first_txid || header.segment == 0 {
                return Ok(part);
            }
            let Some(kept) = Kept::before(&*file.directory, &file.journal, &header)? else {
                let missing = Kept::missing(&*file.directory, &file.journal, &header);
                return Err(self.if_not_forgotten(missing, txid));
            };
            part = Part {
                name: kept_name(&file.journal, kept.head.header.segment),
                end: kept.len,
                storage: kept.storage,
                head: kept.head,
                shown: kept.shown,
            };
        }
    }

    /// Returns the error of a missing segment, unless the kept history begins after the transaction: then remains of
    /// older segments mean nothing.
    fn if_not_forgotten(&self, error: Error, txid: u64) -> Error {
        let file = self.file();
        let first = self.newest().and_then(|part| {
            let past = Past::whole(&*file.directory, &file.journal, &part.head.header)?;
            Ok(past.segments().first().map_or(part.head.header, Kept::header))
        });
        match first {
            Ok(first) if txid < first.first_txid => forgotten(&file.name, txid, &first),
            _ => error,
        }
    }

    /// Replays up to the end of a transaction that a segment has.
    fn replayed(&self, part: &Part, txid: u64) -> Result<(Store, Point)> {
        while let Some(begun) = self.nearest_root(part, txid)? {
            match self.replayed_from(begun.resume(), &begun.past, part, txid) {
                Err(error) if error.kind() == ErrorKind::PageLost => {} // from another root, then
                Err(error) if error.kind() == ErrorKind::Cancelled || error.is_remote() => {
                    return Err(error);
                }
                Err(_) => break,
                replayed => return replayed,
            }
        }
        let header = &part.head.header;
        let past = Past::needed(&*self.file().directory, &part.name, header)
            .map_err(|error| self.if_not_forgotten(error, txid))?;
        self.replayed_from(Replay::default(), &past, part, txid)
    }

    /// Begins with the nearest root of the image before the end of a transaction, which a segment has. `None` if there
    /// is none that can be used: a problem of an image is no error here.
    ///
    /// # Errors
    /// `Unreachable`, `Forgotten`: the image is on another machine, which doesn't answer, or has another by now.
    fn nearest_root(&self, part: &Part, txid: u64) -> Result<Option<OpenedRoot>> {
        let (file, header) = (self.file(), &part.head.header);
        if file.storage.has_fixed_len() {
            return Ok(None);
        }
        let (directory, name) = (&file.directory, image_name(&file.journal));
        let until = file.images.roots_until.map_or(Txid(txid), |until| until.min(Txid(txid)));
        let found = root_before(directory, &name, header, until, self.clock, &file.images.damage);
        let Some((usable, pin)) = unless_remote(found)?.flatten() else { return Ok(None) };
        let since = Since { segment: usable.root.segment, point: usable.root.point };
        let past = Past::since(&**directory, &part.name, header, since);
        let Some(past) = unless_remote(past)?.flatten() else { return Ok(None) };
        unless_remote(OpenedRoot::new(usable, Arc::new(pin), past, self.budget, true))
    }

    fn replayed_from(
        &self,
        mut replay: Replay,
        past: &Past,
        part: &Part,
        txid: u64,
    ) -> Result<(Store, Point)> {
        let Part { storage, head, shown, end, .. } = part;
        let watched = Watched::new(&**storage, self.watch.as_ref());
        let source = FrameSource { past: Some(past), storage: &watched, shown };
        let point = source.read(head, *end, Some(Txid(txid)), &mut replay)?;
        match point.txid >= Txid(txid) {
            true => Ok((replay.finish(), point)),
            false => Err(Error::corrupt(format!(
                "{shown}: damaged at position {}: from there on it doesn't verify; restore it from a backup",
                point.position
            ))),
        }
    }

    /// Upgrades the schema of a past store to the present one.
    fn adapted(&self, mut store: Store) -> Result<Arc<View>> {
        let present = self.published.view.schema();
        let since = store.view().schema().commands().len();
        for command in present.commands().iter().skip(since) {
            let applied = match command {
                Command::DropVariant { .. } => store.apply_to_past(command),
                _ => store.apply_command(command),
            };
            match applied {
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::PageLost) => {
                    return Err(error);
                }
                // The old rows contradict the rule: they are read without it.
                Err(_) => {
                    if let Some(command) = without_rule(command) {
                        store.apply_command(&command)?;
                    }
                }
                Ok(()) => {}
            }
        }
        Ok(store.commit())
    }
}

/// Returns a command that changes the form of rows in the same way, without a rule that existing rows must satisfy.
fn without_rule(command: &Command) -> Option<Command> {
    match command {
        Command::CreateIndex { name, table, fields, descending, collated, .. } => {
            Some(Command::CreateIndex {
                name: name.clone(),
                table: *table,
                fields: fields.clone(),
                descending: descending.clone(),
                collated: collated.clone(),
                unique: false,
            })
        }
        Command::AddField { table, name, ty: Type::Reference(to, _), nullable, default } => {
            let zero = (!nullable).then_some(Value::Reference(RowId(0)));
            Some(Command::AddField {
                table: *table,
                name: name.clone(),
                ty: Type::Reference(*to, OnDelete::Dangle),
                nullable: true,
                default: default.clone().or(zero),
            })
        }
        _ => None,
    }
}

fn forgotten(name: &str, txid: u64, first: &Header) -> Error {
    let first = first.first_txid;
    Error::new(
        ErrorKind::NotFound,
        format!(
            "{name}: transaction {txid} was forgotten: the history begins with the state after transaction {first}"
        ),
    )
}

/// Returns what was found, or nothing after an error that says something about the image.
fn unless_remote<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is_remote() => Err(error),
        found => Ok(found.ok()),
    }
}
