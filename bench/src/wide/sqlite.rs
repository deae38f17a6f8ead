//! SQLite, with a write-ahead log.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{Fields, Row, Table};
use crate::engines::{Failure, sqlite};

const INSERT: &str = "INSERT INTO item(code, name, note, city, year, level, quantity, price, active, \
    created, rating, parent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const UPDATE: &str = "UPDATE item SET code = ?1, name = ?2, note = ?3, city = ?4, year = ?5, level = ?6, \
    quantity = ?7, price = ?8, active = ?9, created = ?10, rating = ?11, parent = ?12 WHERE id = ?13";

pub(super) struct Sqlite(Connection);

impl Sqlite {
    pub(super) fn create(folder: &Path) -> Result<Self, Failure> {
        let connection = sqlite::create(&folder.join("wide.sqlite"))?;
        connection.execute_batch(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, code TEXT NOT NULL, name TEXT NOT NULL, note TEXT, \
             city TEXT NOT NULL, year INTEGER NOT NULL, level INTEGER NOT NULL, quantity INTEGER NOT NULL, \
             price REAL NOT NULL, active INTEGER NOT NULL, created INTEGER NOT NULL, \
             rating REAL NOT NULL, parent INTEGER);
             CREATE UNIQUE INDEX item_by_code ON item(code);
             CREATE INDEX item_by_level ON item(level);
             CREATE INDEX item_by_city_and_year ON item(city, year)",
        )?;
        Ok(Self(connection))
    }

    fn digests<K: rusqlite::ToSql>(
        &mut self,
        condition: &str,
        keys: impl Iterator<Item = K>,
    ) -> Result<u64, Failure> {
        let transaction = self.0.transaction()?;
        let mut find =
            transaction.prepare_cached(&format!("SELECT * FROM item WHERE {condition}"))?;
        let mut sum = 0u64;
        for key in keys {
            sum = sum.wrapping_add(find.query_row([key], digest)?);
        }
        Ok(sum)
    }

    fn soft(&self) -> Result<(), Failure> {
        Ok(self.0.pragma_update(None, "synchronous", "NORMAL")?)
    }
}

/// Returns SQLite's number of the row with an id.
fn number(id: u64) -> i64 {
    id.cast_signed() + 1
}

fn digest(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    let text = |place| row.get_ref(place)?.as_str().map_err(rusqlite::Error::from);
    let fields = Fields {
        code: text(1)?,
        name: text(2)?,
        note: row.get_ref(3)?.as_str_or_null()?,
        city: text(4)?,
        year: row.get(5)?,
        level: row.get(6)?,
        quantity: row.get(7)?,
        price: row.get(8)?,
        active: row.get(9)?,
        created: row.get(10)?,
        rating: row.get(11)?,
        parent: row.get::<_, i64>(12)?.cast_unsigned(),
    };
    Ok(fields.digest())
}

impl Table for Sqlite {
    fn insert(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for row in rows {
                let row = row.fields();
                insert.execute(params![
                    row.code,
                    row.name,
                    row.note,
                    row.city,
                    row.year,
                    row.level,
                    row.quantity,
                    row.price,
                    row.active,
                    row.created,
                    row.rating,
                    row.parent.cast_signed(),
                ])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, ids: &[u64]) -> Result<u64, Failure> {
        self.digests("id = ?1", ids.iter().map(|&id| number(id)))
    }

    fn by_code(&mut self, codes: &[&str]) -> Result<u64, Failure> {
        self.digests("code = ?1", codes.iter())
    }

    fn by_level(&mut self, levels: &[i32]) -> Result<i64, Failure> {
        let transaction = self.0.transaction()?;
        let mut find =
            transaction.prepare_cached("SELECT sum(quantity) FROM item WHERE level = ?1")?;
        levels.iter().try_fold(0, |sum, level| {
            Ok(sum + find.query_row([level], |row| row.get::<_, i64>(0))?)
        })
    }

    fn by_city_and_year(&mut self, keys: &[(&str, i16)]) -> Result<i64, Failure> {
        let transaction = self.0.transaction()?;
        let mut find = transaction
            .prepare_cached("SELECT sum(quantity) FROM item WHERE city = ?1 AND year = ?2")?;
        keys.iter()
            .try_fold(0, |sum, key| Ok(sum + find.query_row(*key, |row| row.get::<_, i64>(0))?))
    }

    fn set_quantity(&mut self, changes: &[(u64, i64)]) -> Result<bool, Failure> {
        self.soft()?;
        let mut set = self.0.prepare_cached("UPDATE item SET quantity = ?2 WHERE id = ?1")?;
        for &(id, quantity) in changes {
            set.execute((number(id), quantity))?;
        }
        Ok(true)
    }

    fn set_three(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        self.soft()?;
        let mut set = self
            .0
            .prepare_cached("UPDATE item SET name = ?2, level = ?3, quantity = ?4 WHERE id = ?1")?;
        for (id, row) in changes {
            let row = row.fields();
            set.execute((number(*id), row.name, row.level, row.quantity))?;
        }
        Ok(true)
    }

    fn set_all(&mut self, changes: &[(u64, Row)]) -> Result<bool, Failure> {
        self.soft()?;
        let mut set = self.0.prepare_cached(UPDATE)?;
        for (id, row) in changes {
            let row = row.fields();
            set.execute(params![
                row.code,
                row.name,
                row.note,
                row.city,
                row.year,
                row.level,
                row.quantity,
                row.price,
                row.active,
                row.created,
                row.rating,
                row.parent.cast_signed(),
                number(*id),
            ])?;
        }
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}
