//! Where in a log a cursor is.

use std::collections::VecDeque;

use annals::Cursor;

/// So many cursors are remembered.
const REMEMBERED: usize = 256;

/// The place of a cursor in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// All messages up to this one are judged: the history after them ends with the cursor.
    pub(super) read: u64,
    /// All messages up to this one are known; those after `read` are parts of transactions whose end isn't there.
    pub(super) tail: u64,
    /// True if the message after `read` has the cursor in the middle.
    pub(super) is_inside: bool,
}

impl Place {
    /// Returns the place after a message.
    pub(super) const fn after(sequence: u64) -> Self {
        Self { read: sequence, tail: sequence, is_inside: false }
    }

    /// Returns the place in the middle of the message after another.
    pub(super) const fn inside_next(sequence: u64) -> Self {
        Self { read: sequence, tail: sequence, is_inside: true }
    }
}

/// The places that were found lately.
#[derive(Debug, Default)]
pub(super) struct Places(VecDeque<(Cursor, Place)>);

impl Places {
    pub(super) fn get(&self, cursor: Cursor) -> Option<Place> {
        self.0.iter().rev().find(|(at, _)| *at == cursor).map(|(_, place)| *place)
    }

    pub(super) fn put(&mut self, cursor: Cursor, place: Place) {
        self.0.retain(|(at, _)| *at != cursor);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((cursor, place));
    }
}
