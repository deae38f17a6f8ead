//! Annals, through its typed API.

use std::path::Path;

use super::Table;
use crate::engines::{Failure, in_order};

annals::schema!("unique.schema");

pub(super) struct Annals(unique::Database);

impl Annals {
    pub(super) fn create(folder: &Path) -> Result<Self, Failure> {
        Ok(Self(unique::Database::open(folder.join("unique.annals"))?))
    }
}

impl Table for Annals {
    fn insert(&mut self, names: &[String]) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            for (name, value) in names.iter().zip(0..) {
                tx.insert(unique::named::New { name, value })?;
            }
            Ok(())
        })?)
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        let now = self.0.read();
        let index = now.named().by_name();
        names.iter().try_fold(0, |sum, name| {
            Ok(sum + index.get(name)?.ok_or("no row has the name")?.value())
        })
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        let now = self.0.read();
        let mut rows = now.named().by_name().iter();
        rows.try_fold(0, |sum, row| Ok(in_order(sum, row?.value())))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
