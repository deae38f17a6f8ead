//! Engines that keep bytes: the row under its id, and a space for each index.

use std::path::Path;

use super::encoding::{city_prefix, decode, encode, id_in, key, level_key, level_prefix};
use super::{Fields, Row, Table};
use crate::engines::{Failure, Level};
use crate::keys::{Changes, Kind, Store, View};

const SPACES: &[&str] = &["rows", "codes", "levels", "cities"];
const ROWS: usize = 0;
const CODES: usize = 1;
const LEVELS: usize = 2;
const CITIES: usize = 3;

/// Passes rows of a state to a callback.
type Find<'a> = &'a dyn Fn(&dyn View, &mut dyn FnMut(&Fields<'_>)) -> Result<(), Failure>;

pub(super) struct Keys {
    store: Box<dyn Store>,
    rows: u64,
}

impl Keys {
    pub(super) fn create(kind: Kind, folder: &Path) -> Result<Self, Failure> {
        Ok(Self { store: kind.create(folder, SPACES)?, rows: 0 })
    }

    /// Returns the sum of a function of each found row.
    fn sum_of(&mut self, find: Find<'_>, of: impl Fn(&Fields<'_>) -> u64) -> Result<u64, Failure> {
        let mut sum = 0u64;
        self.store.read(&mut |view| find(view, &mut |row| sum = sum.wrapping_add(of(row))))?;
        Ok(sum)
    }

    /// Makes commits soft; `false` if that can't be.
    fn soft(&mut self) -> Result<bool, Failure> {
        let has = self.store.has(Level::Soft);
        if has {
            self.store.set_level(Level::Soft)?;
        }
        Ok(has)
    }
}

/// Passes the row of a key to a callback.
fn row_of(view: &dyn View, key: &[u8], take: &mut dyn FnMut(&Fields<'_>)) -> Result<(), Failure> {
    view.get(ROWS, key, &mut |bytes| {
        take(&decode(bytes)?);
        Ok(())
    })
}

/// Puts the entries of a row into the indexes.
fn put_entries(
    changes: &mut dyn Changes,
    (id, row): (u64, &Fields<'_>),
    buffer: &mut Vec<u8>,
) -> Result<(), Failure> {
    changes.put_new(CODES, row.code.as_bytes(), &key(id))?;
    changes.put(LEVELS, &level_key(row.level, id), &[])?;
    city_prefix(buffer, row.city, row.year);
    buffer.extend_from_slice(&key(id));
    changes.put(CITIES, buffer, &[])
}

/// Takes the entries of a row out of the indexes.
fn remove_entries(
    changes: &mut dyn Changes,
    (id, row): (u64, &Fields<'_>),
    buffer: &mut Vec<u8>,
) -> Result<(), Failure> {
    changes.remove(CODES, row.code.as_bytes())?;
    changes.remove(LEVELS, &level_key(row.level, id))?;
    city_prefix(buffer, row.city, row.year);
    buffer.extend_from_slice(&key(id));
    changes.remove(CITIES, buffer)
}

/// Returns a copy of the bytes of a row that is to be changed.
fn before(changes: &mut dyn Changes, id: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
    bytes.clear();
    let found = changes.get(ROWS, &key(id), &mut |row| {
        bytes.extend_from_slice(row);
        Ok(())
    })?;
    if found { Ok(()) } else { Err("there is no such row".into()) }
}

impl Table for Keys {
    fn insert(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let first = self.rows;
        self.store.write(&mut |changes| {
            let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
            for (row, id) in rows.iter().zip(first..) {
                encode(&mut bytes, &row.fields())?;
                changes.append(ROWS, &key(id), &bytes)?;
                put_entries(changes, (id, &row.fields()), &mut buffer)?;
            }
            Ok(())
        })?;
        self.rows += rows.len() as u64;
        Ok(())
    }

    fn read(&mut self, ids: &[u64]) -> Result<u64, Failure> {
        let find = |view: &dyn View, take: &mut dyn FnMut(&Fields<'_>)| {
            ids.iter().try_for_each(|&id| row_of(view, &key(id), take))
        };
        self.sum_of(&find, |row| row.digest())
    }

    fn by_code(&mut self, codes: &[&str]) -> Result<u64, Failure> {
        let find = |view: &dyn View, take: &mut dyn FnMut(&Fields<'_>)| {
            codes.iter().try_for_each(|code| {
                view.get(CODES, code.as_bytes(), &mut |id| row_of(view, id, take))
            })
        };
        self.sum_of(&find, |row| row.digest())
    }

    fn by_level(&mut self, levels: &[i32]) -> Result<i64, Failure> {
        let find = |view: &dyn View, take: &mut dyn FnMut(&Fields<'_>)| {
            levels.iter().try_for_each(|&level| {
                view.with_prefix(LEVELS, &level_prefix(level), &mut |entry, _| {
                    row_of(view, id_in(entry)?, take)
                })
            })
        };
        Ok(self.sum_of(&find, |row| row.quantity.cast_unsigned())?.cast_signed())
    }

    fn by_city_and_year(&mut self, keys: &[(&str, i16)]) -> Result<i64, Failure> {
        let find = |view: &dyn View, take: &mut dyn FnMut(&Fields<'_>)| {
            let mut prefix = Vec::new();
            keys.iter().try_for_each(|&(city, year)| {
                city_prefix(&mut prefix, city, year);
                view.with_prefix(CITIES, &prefix, &mut |entry, _| row_of(view, id_in(entry)?, take))
            })
        };
        Ok(self.sum_of(&find, |row| row.quantity.cast_unsigned())?.cast_signed())
    }

    fn set_quantity(&mut self, quantities: &[(u64, i64)]) -> Result<bool, Failure> {
        if !self.soft()? {
            return Ok(false);
        }
        let (mut old, mut bytes) = (Vec::new(), Vec::new());
        for &(id, quantity) in quantities {
            self.store.write(&mut |changes| {
                before(changes, id, &mut old)?;
                encode(&mut bytes, &Fields { quantity, ..decode(&old)? })?;
                changes.put(ROWS, &key(id), &bytes)
            })?;
        }
        Ok(true)
    }

    fn set_three(&mut self, rows: &[(u64, Row)]) -> Result<bool, Failure> {
        if !self.soft()? {
            return Ok(false);
        }
        let (mut old, mut bytes) = (Vec::new(), Vec::new());
        for (id, row) in rows {
            let (id, row) = (*id, row.fields());
            self.store.write(&mut |changes| {
                before(changes, id, &mut old)?;
                let old = decode(&old)?;
                if old.level != row.level {
                    changes.remove(LEVELS, &level_key(old.level, id))?;
                    changes.put(LEVELS, &level_key(row.level, id), &[])?;
                }
                let (name, level, quantity) = (row.name, row.level, row.quantity);
                encode(&mut bytes, &Fields { name, level, quantity, ..old })?;
                changes.put(ROWS, &key(id), &bytes)
            })?;
        }
        Ok(true)
    }

    fn set_all(&mut self, rows: &[(u64, Row)]) -> Result<bool, Failure> {
        if !self.soft()? {
            return Ok(false);
        }
        let (mut old, mut bytes, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for (id, row) in rows {
            let (id, row) = (*id, row.fields());
            self.store.write(&mut |changes| {
                before(changes, id, &mut old)?;
                remove_entries(changes, (id, &decode(&old)?), &mut buffer)?;
                put_entries(changes, (id, &row), &mut buffer)?;
                encode(&mut bytes, &row)?;
                changes.put(ROWS, &key(id), &bytes)
            })?;
        }
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.store.close()
    }
}
