//! A part of a history: between two moments, and of one table.

use annals::event::Event;
use annals::{Command, Committed, Error, ErrorKind, Result, Schema, Sink, TableNumber, Txid, View};

use crate::output::Output;

/// Prints a history.
pub(crate) trait Printer {
    /// Prints an event.
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Begins where the database was in this state. False if it must see earlier events.
    fn begin(&mut self, state: &View) -> Result<bool>;

    /// Takes an event that isn't printed, but that later events may depend on.
    fn skip(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()>;

    /// Prints the end of a transaction.
    fn commit(&mut self, committed: &Committed) -> Result<()>;

    /// Returns where it prints to.
    fn output(&mut self) -> &mut Output;
}

/// The printed range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Only transactions after this one, if there is one.
    pub(crate) after: Option<Txid>,
    /// No transaction after this one, if there is one.
    pub(crate) upto: Option<Txid>,
    /// Only events of this table, if there is one.
    pub(crate) table: Option<TableNumber>,
}

impl Range {
    /// The whole history.
    pub(crate) const ALL: Self = Self { after: None, upto: None, table: None };
}

/// Passes that part to a printer.
pub(crate) struct Part<P> {
    pub(crate) printer: P,
    range: Range,
    /// True if a transaction was seen.
    has_begun: bool,
    /// True if the transaction is in the range.
    is_in: bool,
    /// True if anything of it was printed.
    is_shown: bool,
    /// The notes in a transaction before its first printed event.
    notes: Vec<Note>,
}

enum Note {
    Comment(String),
    Timestamp(i64),
    ValidData,
}

impl<P: Printer> Part<P> {
    pub(crate) const fn new(printer: P, range: Range) -> Self {
        Self { printer, range, has_begun: false, is_in: true, is_shown: false, notes: Vec::new() }
    }

    /// Begins after `after` at once, where the database was in this state. False if that can't be.
    pub(crate) fn begin_at(&mut self, state: &View) -> Result<bool> {
        let can_begin = self.printer.begin(state)?;
        if can_begin {
            self.range = Range { after: None, upto: None, ..self.range };
        }
        Ok(can_begin)
    }

    /// Prints an event of a table, with the notes before it.
    fn show(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.is_shown = true;
        for note in std::mem::take(&mut self.notes) {
            let note = match &note {
                Note::Comment(text) => Event::Comment(text),
                Note::Timestamp(seconds) => Event::Timestamp(*seconds),
                Note::ValidData => Event::ValidData,
            };
            self.printer.event(schema, &note)?;
        }
        self.printer.event(schema, event)
    }
}

impl<P: Printer> Sink for Part<P> {
    fn begin(&mut self, txid: Txid) -> Result<()> {
        let Range { after, upto, .. } = self.range;
        if !std::mem::replace(&mut self.has_begun, true) {
            // The first one of the kept history may be the state at that point, which has no single time.
            let before = [after, upto].into_iter().flatten().find(|&end| end < txid);
            if let Some(end) = before.filter(|_| txid > Txid(1)) {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "the history up to transaction {end} was deleted: it now begins with {txid}; give `--from` or \
                         `--to` a moment from there on, or omit them"
                    ),
                ));
            }
        }
        self.is_in = after.unwrap_or_default() < txid && upto.is_none_or(|upto| txid <= upto);
        self.is_shown = false;
        self.notes.clear();
        Ok(())
    }

    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        if !self.is_in {
            return self.printer.skip(schema, event);
        }
        let Some(table) = self.range.table else {
            self.is_shown = true;
            return self.printer.event(schema, event);
        };
        match event {
            Event::Comment(text) if !self.is_shown => {
                self.notes.push(Note::Comment((*text).to_owned()));
                Ok(())
            }
            Event::Timestamp(seconds) if !self.is_shown => {
                self.notes.push(Note::Timestamp(*seconds));
                Ok(())
            }
            Event::ValidData if !self.is_shown => {
                self.notes.push(Note::ValidData);
                Ok(())
            }
            Event::Comment(_) | Event::Timestamp(_) | Event::ValidData => {
                self.printer.event(schema, event)
            }
            _ if table_of(schema, event) == Some(table) => self.show(schema, event),
            _ => self.printer.skip(schema, event),
        }
    }

    fn commit(&mut self, _: &Schema, committed: &Committed) -> Result<()> {
        if self.is_in && (self.is_shown || self.range.table.is_none()) {
            self.printer.commit(committed)?;
        }
        Ok(())
    }
}

/// Returns the table that an event is about.
fn table_of(schema: &Schema, event: &Event<'_>) -> Option<TableNumber> {
    match *event {
        Event::Insert { table, .. }
        | Event::Update { table, .. }
        | Event::Delete { table, .. }
        | Event::InsertVector { table, .. }
        | Event::UpdateVector { table, .. }
        | Event::DeleteVector { table, .. } => Some(table),
        Event::Schema(command) => match command {
            Command::CreateTable { .. } => {
                let is_one = |command: &&Command| matches!(command, Command::CreateTable { .. });
                let before = schema.commands().iter().filter(is_one).count();
                u32::try_from(before).ok().map(TableNumber)
            }
            Command::AddField { table, .. }
            | Command::CreateIndex { table, .. }
            | Command::DropTable { table }
            | Command::RenameTable { table, .. }
            | Command::DropField { table, .. }
            | Command::RenameField { table, .. }
            | Command::AddVariant { table, .. }
            | Command::RenameVariant { table, .. }
            | Command::DropVariant { table, .. }
            | Command::SetSingleRow { table, .. }
            | Command::SetHistoryIndex { table, .. } => Some(*table),
            Command::DropIndex { index } => schema
                .indexes()
                .iter()
                .find(|known| known.number == *index)
                .map(|known| known.table),
            Command::Custom { .. } => None,
        },
        Event::Blob { .. } | Event::ValidData | Event::Comment(_) | Event::Timestamp(_) => None,
    }
}
