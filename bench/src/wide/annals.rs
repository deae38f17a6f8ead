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
        parent: Some(item::Id::new(row.fields().parent)),
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
        parent: row.parent().map_or(u64::MAX, item::Id::get),
    };
    fields.digest()
}

impl Table for Annals {
    fn insert(&mut self, rows: &[Row]) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            let mut table = tx.item();
            for row in rows {
                table.insert(new(row))?;
            }
            Ok(())
        })?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<u64, Failure> {
        let now = self.0.read();
        let table = now.item();
        ids.iter()
            .try_fold(0u64, |sum, &id| Ok(sum.wrapping_add(digest(&table.get(item::Id::new(id))?))))
    }

    fn by_code(&mut self, codes: &[&str]) -> Result<u64, Failure> {
        let now = self.0.read();
        let index = now.item_by_code();
        codes.iter().try_fold(0u64, |sum, code| {
            let row = index.get(code)?.ok_or("no row has the code")?;
            Ok(sum.wrapping_add(digest(&row)))
        })
    }

    fn by_level(&mut self, levels: &[i32]) -> Result<i64, Failure> {
        let now = self.0.read();
        let index = now.item_by_level();
        let mut sum = 0;
        for &level in levels {
            for row in index.find(level) {
                sum += row?.quantity();
            }
        }
        Ok(sum)
    }

    fn by_city_and_year(&mut self, keys: &[(&str, i16)]) -> Result<i64, Failure> {
        let now = self.0.read();
        let index = now.item_by_city_and_year();
        let mut sum = 0;
        for &(city, year) in keys {
            for row in index.find(city, year) {
                sum += row?.quantity();
            }
        }
        Ok(sum)
    }

    fn set_quantity(&mut self, changes: &[(u64, i64)]) -> Result<bool, Failure> {
        for &(id, quantity) in changes {
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                tx.item().set_quantity(item::Id::new(id), quantity)
            })?;
        }
        Ok(true)
    }

    fn set_three(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        for (id, row) in changes {
            let (id, row) = (item::Id::new(*id), row.fields());
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                let mut table = tx.item();
                table.set_name(id, row.name)?;
                table.set_level(id, row.level)?;
                table.set_quantity(id, row.quantity)
            })?;
        }
        Ok(true)
    }

    fn set_all(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        for (id, row) in changes {
            let (id, row) = (item::Id::new(*id), new(row));
            self.0.write(|tx| {
                tx.set_level(Level::Soft);
                let mut table = tx.item();
                table.set_code(id, row.code)?;
                table.set_name(id, row.name)?;
                table.set_note(id, row.note)?;
                table.set_city(id, row.city)?;
                table.set_year(id, row.year)?;
                table.set_level(id, row.level)?;
                table.set_quantity(id, row.quantity)?;
                table.set_price(id, row.price)?;
                table.set_active(id, row.active)?;
                table.set_created(id, row.created)?;
                table.set_rating(id, row.rating)?;
                table.set_parent(id, row.parent)
            })?;
        }
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
