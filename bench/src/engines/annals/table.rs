//! The common part of tables of all shapes with a name and a value, each in the types of its schema.

/// Implements the operations on a database of a schema, for a table, with the index of a name if there is one.
macro_rules! table {
    ($database:ident, $schema:ident :: $table:ident $(, $index:ident, $with:ident)?) => {
        /// A thread's part in it.
        struct Part<'a> {
            database: &'a $schema::Database,
            level: ::annals::Level,
        }

        impl $database {
            /// Opens the database at a path, or creates it.
            pub(crate) fn open(
                path: &::std::path::Path,
                options: &::annals::Options,
            ) -> Result<Self, Failure> {
                Ok(Self($schema::Database::open_with(path, options)?))
            }

            /// Returns where the last commit ends in the journal.
            pub(crate) fn position(&self) -> u64 {
                self.0.read().as_dynamic().point().position
            }
        }

        impl Table for $database {
            fn insert(&mut self, ids: ::std::ops::Range<u64>, names: &Names) -> Result<(), Failure> {
                Ok(self.0.write(|tx| {
                    for (id, name) in names.of(ids) {
                        tx.insert($schema::$table::New { name, value: value(id, 0) })?;
                    }
                    Ok(())
                })?)
            }

            fn insert_columns(&mut self, names: &[&str], values: &[i64]) -> Result<bool, Failure> {
                let columns = $schema::$table::Columns { name: names, value: values };
                self.0.write(|tx| Ok(tx.insert_vector(columns)?))?;
                Ok(true)
            }

            fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
                Ok(self.0.write(|tx| {
                    for &id in ids {
                        tx.edit($schema::$table::Id::from_u64(id))?.set_value(value(id, version))?;
                    }
                    Ok(())
                })?)
            }

            fn read(&mut self, ids: &[u64]) -> Result<i64, Failure> {
                let now = self.0.read();
                let table = now.$table();
                let mut sum = 0i64;
                for &id in ids {
                    sum = sum.wrapping_add(table.require($schema::$table::Id::from_u64(id))?.value());
                }
                Ok(sum)
            }

            fn find(&mut self, names: &[String]) -> Result<i64, Failure> {
                let now = self.0.read();
                $(
                    let index = now.$table().$index();
                    let mut sum = 0i64;
                    for name in names {
                        let row = index.$with(name).next().ok_or("no row has the name")??;
                        sum = sum.wrapping_add(row.value());
                    }
                    return Ok(sum);
                )?
                #[allow(unreachable_code, reason = "there may be an index")]
                Err(format!("{} has no index for {names:?}", now.$table().len()).into())
            }

            fn scan(&mut self) -> Result<i64, Failure> {
                let now = self.0.read();
                let (table, first) = (now.$table(), $schema::$table::Id::from_u64(0));
                let mut sum = 0i64;
                for values in table.slices_of($schema::$table::VALUE, first, table.len())? {
                    sum = values?.iter().fold(sum, |sum, value| sum.wrapping_add(*value));
                }
                Ok(sum)
            }

            fn scan_by_name(&mut self) -> Result<i64, Failure> {
                let now = self.0.read();
                $(
                    let mut sum = 0;
                    for row in now.$table().$index().iter() {
                        sum = in_order(sum, row?.value());
                    }
                    return Ok(sum);
                )?
                #[allow(unreachable_code, reason = "there may be an index")]
                Err(format!("the table of {} rows has no index", now.$table().len()).into())
            }

            fn writer(&self, level: Level) -> Result<Option<Box<dyn Writer + Send + '_>>, Failure> {
                let level = match level {
                    Level::Soft => ::annals::Level::Soft,
                    Level::Durable => ::annals::Level::Checksummed,
                };
                Ok(Some(Box::new(Part { database: &self.0, level })))
            }

            fn memory(&self) -> Option<u64> {
                u64::try_from(self.0.read().as_dynamic().memory()).ok()
            }

            fn close(self: Box<Self>) -> Result<(), Failure> {
                Ok(self.0.close()?)
            }
        }

        impl Writer for Part<'_> {
            fn insert(&mut self, ids: ::std::ops::Range<u64>, names: &Names) -> Result<(), Failure> {
                for (id, name) in names.of(ids) {
                    self.database.write(|tx| {
                        tx.set_level(self.level);
                        Ok(tx.insert($schema::$table::New { name, value: value(id, 0) })?)
                    })?;
                }
                Ok(())
            }

            fn update(&mut self, ids: &[u64], version: u32) -> Result<(), Failure> {
                for &id in ids {
                    self.database.write(|tx| {
                        tx.set_level(self.level);
                        tx.edit($schema::$table::Id::from_u64(id))?.set_value(value(id, version))?;
                        Ok(())
                    })?;
                }
                Ok(())
            }
        }
    };
}

pub(super) use table;
