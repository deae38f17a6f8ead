//! Engines that keep bytes in the order of keys, in several spaces: what a table with several indexes is
//! made of by hand.
//!
//! Calls through these traits cost two nanoseconds where an operation takes hundreds.

mod fjall;
mod lmdb;
mod redb;

use std::path::Path;

use crate::engines::{Failure, Level};

/// One of them, and its name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// LMDB; soft commits with `MDB_NOSYNC`.
    Lmdb,
    /// redb; all commits are durable.
    Redb,
    /// fjall; transactions are batches, which don't see themselves: a key that is twice in one isn't found.
    Fjall,
}

impl Kind {
    /// Returns its name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lmdb => "LMDB",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
        }
    }

    /// Creates a database with these spaces in an empty folder.
    pub(crate) fn create(
        self,
        folder: &Path,
        spaces: &'static [&'static str],
    ) -> Result<Box<dyn Store>, Failure> {
        Ok(match self {
            Self::Lmdb => Box::new(lmdb::Lmdb::create(folder, spaces)?),
            Self::Redb => Box::new(redb::Redb::create(folder, spaces)?),
            Self::Fjall => Box::new(fjall::Fjall::create(folder, spaces)?),
        })
    }
}

/// An open database. Spaces are named by their index in the list at creation.
pub(crate) trait Store {
    /// True if there are commits of a level.
    fn has(&self, level: Level) -> bool;

    /// Sets the level of later commits to one that exists.
    fn set_level(&mut self, level: Level) -> Result<(), Failure>;

    /// Runs a change in a separate transaction, and commits it.
    fn write(
        &mut self,
        change: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// Calls a function with one state.
    fn read(
        &mut self,
        look: &mut dyn FnMut(&dyn View) -> Result<(), Failure>,
    ) -> Result<(), Failure>;

    /// Closes.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// A callback for a found value.
pub(crate) type Found<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>;

/// A callback for a key and its value.
pub(crate) type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), Failure>;

/// A transaction that changes.
pub(crate) trait Changes {
    /// Passes the value of a key to a callback; returns true if there is one.
    fn get(&mut self, space: usize, key: &[u8], found: Found<'_>) -> Result<bool, Failure>;

    /// Sets the value of a key.
    fn put(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Sets the value of a key after all others of its space.
    fn append(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.put(space, key, value)
    }

    /// Sets the value of a new key; fails if it exists, and then the transaction must fail, too.
    fn put_new(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        match self.get(space, key, &mut |_| Ok(()))? {
            true => Err("there is that key".into()),
            false => self.put(space, key, value),
        }
    }

    /// Removes a key.
    fn remove(&mut self, space: usize, key: &[u8]) -> Result<(), Failure>;
}

/// One state, for reading.
pub(crate) trait View {
    /// Passes the value of a key to a callback; fails if there is none.
    fn get(&self, space: usize, key: &[u8], found: Found<'_>) -> Result<(), Failure>;

    /// Passes all keys that begin with these bytes, in order, to a callback.
    fn with_prefix(&self, space: usize, prefix: &[u8], each: Each<'_>) -> Result<(), Failure>;
}

/// Returns the error that a key is missing.
fn missing() -> Failure {
    "there is no such key".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_keeps_finds_and_removes() {
        for kind in [Kind::Lmdb, Kind::Redb, Kind::Fjall] {
            let folder = tempfile::tempdir().unwrap();
            let mut store = kind.create(folder.path(), &["one", "two"]).unwrap();
            for (round, level) in [Level::Durable, Level::Soft].into_iter().enumerate() {
                if !store.has(level) {
                    continue;
                }
                store.set_level(level).unwrap();
                let key = |place: u8| [b'a', u8::try_from(round).unwrap(), place];
                store
                    .write(&mut |changes| {
                        changes.append(0, &key(1), b"first")?;
                        changes.put_new(1, &key(1), b"other")?;
                        changes.put(1, &key(2), b"gone")
                    })
                    .unwrap();
                let again = store.write(&mut |changes| changes.put_new(1, &key(1), b"again"));
                assert!(again.is_err(), "{}", kind.name());
                store.write(&mut |changes| changes.remove(1, &key(2))).unwrap();
                store
                    .read(&mut |view| {
                        let mut seen = Vec::new();
                        view.get(0, &key(1), &mut |value| {
                            seen.push(value.to_vec());
                            Ok(())
                        })?;
                        view.with_prefix(1, &key(0)[..2], &mut |key, value| {
                            seen.push([key, value].concat());
                            Ok(())
                        })?;
                        let mut all = 0;
                        view.with_prefix(1, b"", &mut |_, _| {
                            all += 1;
                            Ok(())
                        })?;
                        assert_eq!(all, round + 1, "{}", kind.name());
                        let other = [&key(1)[..], b"other"].concat();
                        assert_eq!(seen, [b"first".to_vec(), other], "{}", kind.name());
                        assert!(view.get(1, &key(2), &mut |_| Ok(())).is_err());
                        Ok(())
                    })
                    .unwrap();
            }
            store.close().unwrap();
        }
    }
}
