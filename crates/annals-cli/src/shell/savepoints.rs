//! The shell's commands for savepoints, which have names here: the newest of a name counts.

use annals::{Error, Result, Savepoint, Transaction};

use super::words::Words;

/// The savepoints of the open transaction, in the order in which they were set.
#[derive(Debug, Default)]
pub(super) struct Savepoints(Vec<(String, Savepoint)>);

impl Savepoints {
    /// Forgets all: their transaction is over.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets one.
    pub(super) fn set(
        &mut self,
        transaction: &mut Transaction<'_>,
        words: &Words<'_>,
    ) -> Result<()> {
        let [name] = words.exactly()?;
        self.0.push((name.text.to_string(), transaction.set_savepoint()?));
        Ok(())
    }

    /// Returns to one, which stays.
    pub(super) fn roll_back_to(
        &mut self,
        transaction: &mut Transaction<'_>,
        words: &Words<'_>,
    ) -> Result<()> {
        let (place, savepoint) = self.find(words)?;
        transaction.roll_back_to(savepoint)?;
        self.0.truncate(place + 1);
        Ok(())
    }

    /// Forgets one and those after it.
    pub(super) fn release(
        &mut self,
        transaction: &mut Transaction<'_>,
        words: &Words<'_>,
    ) -> Result<()> {
        let (place, savepoint) = self.find(words)?;
        transaction.release(savepoint)?;
        self.0.truncate(place);
        Ok(())
    }

    fn find(&self, words: &Words<'_>) -> Result<(usize, Savepoint)> {
        let [name] = words.exactly()?;
        let found = self.0.iter().enumerate().rfind(|(_, (own, _))| *own == name.text);
        let (place, (_, savepoint)) = found.ok_or_else(|| self.unknown(&name.text))?;
        Ok((place, *savepoint))
    }

    fn unknown(&self, name: &str) -> Error {
        let name = annals_schema::shorten(name);
        let known: Vec<_> = self.0.iter().map(|(known, _)| known.as_str()).collect();
        Error::invalid(match known.as_slice() {
            [] => format!("this transaction has no savepoint `{name}`; it has none"),
            _ => format!(
                "this transaction has no savepoint `{name}`; it has, the oldest first: {}",
                known.join(", ")
            ),
        })
    }
}
