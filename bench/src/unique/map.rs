//! The ordered map of the standard library.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Table;
use crate::engines::{Failure, in_order};

#[derive(Default)]
pub(super) struct Map(BTreeMap<String, u64>);

impl Table for Map {
    fn insert(&mut self, names: &[String]) -> Result<(), Failure> {
        for (name, value) in names.iter().zip(0..) {
            match self.0.entry(name.clone()) {
                Entry::Vacant(free) => free.insert(value),
                Entry::Occupied(_) => return Err("there is that name".into()),
            };
        }
        Ok(())
    }

    fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
        names.iter().try_fold(0, |sum, name| {
            Ok(sum + self.0.get(name).ok_or("no row has the name")?.cast_signed())
        })
    }

    fn scan(&mut self) -> Result<i64, Failure> {
        Ok(self.0.values().fold(0, |sum, value| in_order(sum, value.cast_signed())))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
