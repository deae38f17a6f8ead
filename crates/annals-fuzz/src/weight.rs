//! How much a journal may weigh in memory, by what its frames say.

use annals::event::{Event, width};
use annals::journal::format::{FRAME_ALIGN, FRAME_MAGIC, FRAMES_AT, Header};
use annals::journal::testing::{Around, decode};
use annals::{Command, Schema};

/// The total contents of all verified frames of a file, committed or not.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    /// Bytes of the file.
    len: u64,
    /// Rows, each counted each time that it is inserted.
    rows: u64,
    /// Fields, and columns of indexes.
    columns: u64,
    /// The length of the longest default, which each row may get.
    longest: u64,
}

/// More than this takes too long to look for anything else.
const MOST_CELLS: u64 = 1 << 20;

impl Weight {
    /// Weighs a file.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut weight = Self { len: bytes.len() as u64, columns: 1, ..Self::default() };
        let mut schema = Schema::default();
        let header = bytes.first_chunk().and_then(Header::decode);
        let segment = header.map_or(0, |header| header.hash());
        let around = Around { segment, ..Around::default() };
        for (at, place) in (0_u64..).zip(0..bytes.len()) {
            let rest = bytes.get(place..).unwrap_or_default();
            if at < FRAMES_AT || at % FRAME_ALIGN != 0 || !rest.starts_with(&FRAME_MAGIC) {
                continue;
            }
            let Some(found) = decode(rest, at, 0, around) else { continue };
            let payload = found.payload;
            // Undecodable events have the weight of those before them.
            let _ = annals_event::decode(payload, at, &mut schema, &mut |_, event| {
                weight.add(event);
                Ok(())
            });
        }
        weight
    }

    fn add(&mut self, event: &Event<'_>) {
        match *event {
            Event::Insert { .. } => self.rows += 1,
            Event::InsertVector { count, .. } => self.rows += count,
            Event::Schema(Command::AddField { ty, default, .. }) => {
                self.columns += 1;
                if width(*ty).is_none() && default.is_some() {
                    self.longest = self.longest.max(self.len - FRAMES_AT);
                }
            }
            Event::Schema(Command::CreateIndex { fields, .. }) => {
                self.columns += 1 + fields.len() as u64;
            }
            _ => {}
        }
    }

    fn cells(&self) -> u64 {
        self.rows.saturating_mul(self.columns)
    }

    /// True if looking at the file would take seconds.
    pub(crate) fn is_too_much(&self) -> bool {
        self.cells() > MOST_CELLS
    }

    /// Returns how many bytes of memory opening it may take.
    pub(crate) fn limit(&self) -> usize {
        let bytes = (4 << 20) + 64 * self.len + self.cells().saturating_mul(64 + self.longest);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}
