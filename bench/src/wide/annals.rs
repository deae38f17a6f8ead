//! Annals, through its typed API.

use std::path::Path;

use annals::{Level, Timestamp};

use super::{Fields, Row, Table};
use crate::engines::Failure;

annals::schema!("wide.schema");

use wide::item;

pub(super) struct Annals(wide::Database);

impl Annals {
    pub(super) fn create(folder: &Path) -> Result<Self, Failure> {
        Ok(Self(wide::Database::open(folder.join("wide.annals"))?))
    }
}

fn new(row: &Row) -> item::New<'_> {
    let Fields { code, name, note, city, year, level, quantity, price, active, rating, .. } =
        row.fields();
    item::New {
        code,
        name,
        note,
        city,
        year,
        level,
        quantity,
        price,
        active,
        created: Timestamp(row.fields().created),
        rating,
        parent: Some(item::Id::from_u64(row.fields().parent)),
    }
}

fn digest(row: &item::Row<'_>) -> u64 {
    let fields = Fields {
        code: row.code(),
        name: row.name(),
        note: row.note(),
        city: row.city(),
        year: row.year(),
        level: row.level(),
        quantity: row.quantity(),
        price: row.price(),
        active: row.active(),
        created: row.created().0,
        rating: row.rating(),
        parent: row.parent().map_or(u64::MAX, item::Id::as_u64),
    };
    fields.digest()
}

impl Table for Annals {
    fn insert(&mut self, rows: &[Row]) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            for row in rows {
                tx.insert(new(row))?;
            }
            Ok(())
        })?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<u64, Failure> {
        let now = self.0.read();
        let table = now.item();
        ids.iter().try_fold(0u64, |sum, &id| {
            Ok(sum.wrapping_add(digest(&table.require(item::Id::from_u64(id))?)))
        })
    }

    fn by_code(&mut self, codes: &[&str]) -> Result<u64, Failure> {
        let now = self.0.read();
        let index = now.item().by_code();
        codes.iter().try_fold(0u64, |sum, code| {
            let row = index.get(code)?.ok_or("no row has the code")?;
            Ok(sum.wrapping_add(digest(&row)))
        })
    }

    fn by_level(&mut self, levels: &[i32]) -> Result<i64, Failure> {
        let now = self.0.read();
        let index = now.item().by_level();
        let mut sum = 0;
        for &level in levels {
            for row in index.with_level(level) {
                sum += row?.quantity();
            }
        }
        Ok(sum)
    }

    fn by_city_and_year(&mut self, keys: &[(&str, i16)]) -> Result<i64, Failure> {
        let now = self.0.read();
        let index = now.item().by_city_and_year();
        let mut sum = 0;
        for &(city, year) in keys {
            for row in index.with_city_and_year(city, year) {
                sum += row?.quantity();
            }
        }
        Ok(sum)
    }

    fn set_quantity(&mut self, changes: &[(u64, i64)]) -> Result<bool, Failure> {
        for &(id, quantity) in changes {
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                tx.edit(item::Id::from_u64(id))?.set_quantity(quantity)?;
                Ok(())
            })?;
        }
        Ok(true)
    }

    fn set_three(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        for (id, row) in changes {
            let (id, row) = (item::Id::from_u64(*id), row.fields());
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                tx.edit(id)?
                    .set_name(row.name)?
                    .set_level(row.level)?
                    .set_quantity(row.quantity)?;
                Ok(())
            })?;
        }
        Ok(true)
    }

    fn set_all(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        for (id, row) in changes {
            let (id, row) = (item::Id::from_u64(*id), new(row));
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                tx.edit(id)?
                    .set_code(row.code)?
                    .set_name(row.name)?
                    .set_note(row.note)?
                    .set_city(row.city)?
                    .set_year(row.year)?
                    .set_level(row.level)?
                    .set_quantity(row.quantity)?
                    .set_price(row.price)?
                    .set_active(row.active)?
                    .set_created(row.created)?
                    .set_rating(row.rating)?
                    .set_parent(row.parent)?;
                Ok(())
            })?;
        }
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
