//! The log of a schema's commands.
//!
//! It only grows at its end, and a copy of it shares all but its last few commands: a transaction that
//! changes a schema copies the one that readers have.

use std::sync::Arc;

use crate::Command;

/// How many commands share one allocation.
const CHUNK: usize = 64;

/// The commands that built a schema, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commands {
    /// All but the last have [`CHUNK`] commands.
    chunks: Vec<Arc<Vec<Command>>>,
}

impl Commands {
    /// Returns the number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        full + self.chunks.last().map_or(0, |chunk| chunk.len())
    }

    /// True if there is no command.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the command at a place, counted from 0.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&Command> {
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    /// Returns the commands in order.
    pub fn iter(&self) -> impl Iterator<Item = &Command> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub(crate) fn push(&mut self, command: Command) {
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => Arc::make_mut(chunk).push(command),
            None => self.chunks.push(Arc::new(vec![command])),
        }
    }
}

impl<'c> IntoIterator for &'c Commands {
    type Item = &'c Command;
    type IntoIter = std::iter::FlatMap<
        std::slice::Iter<'c, Arc<Vec<Command>>>,
        std::slice::Iter<'c, Command>,
        fn(&'c Arc<Vec<Command>>) -> std::slice::Iter<'c, Command>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}
