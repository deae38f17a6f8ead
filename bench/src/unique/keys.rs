//! Engines that keep bytes: the row under its id, and the id under the name.

use std::path::Path;

use super::Table;
use crate::engines::{Failure, in_order};
use crate::keys::{Kind, Store};

const ROWS: usize = 0;
const NAMES: usize = 1;

pub(super) struct Keys {
    store: Box<dyn Store>,
    rows: u64,
}

impl Keys {
    pub(super) fn create(kind: Kind, folder: &Path) -> Result<Self, Failure> {
        Ok(Self { store: kind.create(folder, &["rows", "names"])?, rows: 0 })
    }
}

fn value_in(row: &[u8]) -> Result<i64, Failure> {
    Ok(i64::from_le_bytes(*row.first_chunk().ok_or("a row is too short")?))
}

impl Table for Keys {
    fn insert(&mut self, names: &[String]) -> Result<(), Failure> {
        let first = self.rows;
        self.store.write(&mut |changes| {
            let mut row = Vec::new();
            for ((name, id), value) in names.iter().zip(first..).zip(0_i64..) {
                #[allow(clippy::big_endian_bytes, reason = "bytes are to sort as numbers do")]
                let key = id.to_be_bytes();
                changes.put_new(NAMES, name.as_bytes(), &key)?;
                row.clear();
                row.extend_from_slice(&value.to_le_bytes());
                row.extend_from_slice(name.as_bytes());
                changes.append(ROWS, &key, &row)?;
            }
            Ok(())
        })?;
        self.rows += names.len() as u64;
        Ok(())
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let mut sum = 0;
        self.store.read(&mut |view| {
            for name in names {
                view.get(NAMES, name.as_bytes(), &mut |id| {
                    view.get(ROWS, id, &mut |row| {
                        sum += value_in(row)?;
                        Ok(())
                    })
                })?;
            }
            Ok(())
        })?;
        Ok(sum)
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let mut sum = 0;
        self.store.read(&mut |view| {
            view.with_prefix(NAMES, b"", &mut |_, id| {
                view.get(ROWS, id, &mut |row| {
                    sum = in_order(sum, value_in(row)?);
                    Ok(())
                })
            })
        })?;
        Ok(sum)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.store.close()
    }
}
