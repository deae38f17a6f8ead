//! The schema language, as the model understands it.

use annals::{Command, ErrorKind, Type, Value};
use annals_schema::write_value;

use super::model::{Answer, Field, Index, Model, Table, zero};

fn check(holds: bool) -> Answer {
    if holds { Ok(()) } else { Err(ErrorKind::Invalid) }
}

pub(super) fn is_name(name: &str) -> bool {
    let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    name.chars().all(word)
        && name.len() <= 255
        && !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
}

/// True if a command is compared in its place.
pub(super) fn is_ordered(command: &Command) -> bool {
    use Command as C;
    let is_outcome = matches!(command, C::SetSingleRow { .. } | C::SetHistoryIndex { .. });
    !is_outcome && !matches!(command, C::CreateIndex { .. } | C::DropIndex { .. })
}

impl Model {
    fn name_of(&self, table: u32) -> &str {
        &self.table(table).name
    }

    fn index_named(&self, name: &str) -> Option<&Index> {
        self.indexes.values().find(|index| index.name == name)
    }

    /// True if a table other than `except` has this name.
    fn is_table(&self, name: &str, except: Option<u32>) -> bool {
        self.tables.iter().any(|(&number, table)| table.name == name && Some(number) != except)
    }

    /// Says whether a command fits the schema, whatever rows there are.
    pub(super) fn fits(&self, command: &Command) -> Answer {
        let there = |table: &annals::TableNumber| check(self.tables.contains_key(&table.0));
        let field_there = |table: &annals::TableNumber, field: &annals::FieldNumber| {
            there(table)?;
            check(self.table(table.0).place(field.0).is_some())
        };
        match command {
            Command::CreateTable { name } => check(is_name(name) && !self.is_table(name, None)),
            Command::DropTable { table } => {
                there(table)?;
                let others = self.tables.iter().filter(|(number, _)| **number != table.0);
                let mut fields = others.flat_map(|(_, other)| &other.fields);
                check(!fields.any(|field| {
                    matches!(field.ty, Type::Reference(to, rule) if to == *table && rule.is_enforced())
                }))
            }
            Command::RenameTable { table, name } => {
                there(table)?;
                check(is_name(name) && !self.is_table(name, Some(table.0)))
            }
            Command::AddField { table, name, ty, nullable, default } => {
                there(table)?;
                if let Type::Reference(target, _) = ty {
                    there(target)?;
                }
                let fields = &self.table(table.0).fields;
                check(is_name(name) && fields.iter().all(|field| field.name != *name))?;
                let nullable = *nullable || ty.is_always_nullable();
                check(match default {
                    None => true,
                    Some(Value::Null) => nullable,
                    Some(Value::Blob(_)) => false,
                    Some(value) => ty.accepts(nullable, value.as_ref()),
                })
            }
            Command::DropField { table, field } => {
                field_there(table, field)?;
                let mut indexes = self.indexes.values();
                check(!indexes.any(|i| i.table == table.0 && i.fields.contains(&field.0)))
            }
            Command::RenameField { table, field, name } => {
                field_there(table, field)?;
                let mut fields = self.table(table.0).fields.iter();
                let taken = fields.any(|known| known.name == *name && known.number != field.0);
                check(is_name(name) && !taken)
            }
            Command::AddVariant { table, field, .. }
            | Command::RenameVariant { table, field, .. }
            | Command::DropVariant { table, field, .. } => {
                field_there(table, field)?;
                check(self.variant_fits(table.0, field.0, command))
            }
            Command::CreateIndex { name, table, fields, .. } => {
                check(is_name(name) && self.index_named(name).is_none())?;
                there(table)?;
                fields.iter().try_for_each(|field| field_there(table, field))?;
                let mut numbers: Vec<_> = fields.iter().map(|field| field.0).collect();
                numbers.sort_unstable();
                numbers.dedup();
                check(numbers.len() == fields.len() && !fields.is_empty())
            }
            Command::DropIndex { index } => check(self.indexes.contains_key(&index.0)),
            Command::SetSingleRow { table, .. } | Command::SetHistoryIndex { table, .. } => {
                there(table)
            }
            Command::Custom { name } => check(is_name(name)),
        }
    }

    /// Says whether the rows let a command be, which fits the schema.
    fn rows_let(&self, command: &Command) -> Answer {
        match command {
            Command::AddField { table, ty, default: Some(Value::Reference(to)), .. } => {
                let Type::Reference(target, rule) = *ty else { return Err(ErrorKind::Invalid) };
                let leads = self.has(target.0, to.0) || !rule.is_enforced();
                let fine = leads || self.table(table.0).rows.is_empty();
                if fine { Ok(()) } else { Err(ErrorKind::Reference) }
            }
            Command::DropVariant { table, field, variant } => {
                let owner = self.table(table.0);
                let place = owner.place(field.0).unwrap();
                let has = |value: &Value| matches!(value, Value::Enum(v) if v.number() == *variant);
                check(!owner.rows.values().any(|row| has(&row[place])))
            }
            Command::CreateIndex { unique: true, .. } => {
                let mut with = self.clone();
                with.define(command);
                let doubled =
                    with.indexes.last_key_value().is_some_and(|(_, i)| with.is_doubled(i));
                if doubled { Err(ErrorKind::Unique) } else { Ok(()) }
            }
            Command::SetSingleRow { table, single: true } => {
                let table = self.table(table.0);
                check(table.rows.len() < 2)?;
                if table.rows.is_empty() { table.free(table.next_id, 1) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Applies a command, or says why it can't be.
    pub(super) fn command(&mut self, command: &Command) -> Answer {
        self.fits(command)?;
        self.rows_let(command)?;
        self.define(command);
        Ok(())
    }

    /// Applies a command that fits, to schema and rows.
    pub(super) fn define(&mut self, command: &Command) {
        self.lines.push(self.line(command));
        self.commands.push(command.clone());
        match command.clone() {
            Command::CreateTable { name } => {
                let (fields, rows) = (Vec::new(), std::collections::BTreeMap::new());
                let table = Table {
                    name,
                    fields,
                    single: false,
                    is_indexed: true,
                    next_field: 0,
                    next_id: 0,
                    rows,
                };
                self.tables.insert(self.next_table, table);
                self.next_table += 1;
            }
            Command::DropTable { table } => {
                self.tables.remove(&table.0);
                self.indexes.retain(|_, index| index.table != table.0);
            }
            Command::RenameTable { table, name } => self.table_mut(table.0).name = name,
            Command::AddField { table, name, ty, nullable, default } => {
                let table = self.table_mut(table.0);
                let nullable = nullable || ty.is_always_nullable();
                let default = default.unwrap_or_else(|| zero(ty, nullable));
                table.rows.values_mut().for_each(|row| row.push(default.clone()));
                table.fields.push(Field { number: table.next_field, name, ty, nullable, default });
                table.next_field += 1;
            }
            Command::DropField { table, field } => {
                let table = self.table_mut(table.0);
                let place = table.place(field.0).unwrap();
                table.fields.remove(place);
                table.rows.values_mut().for_each(|row| drop(row.remove(place)));
            }
            Command::AddVariant { table, field, .. }
            | Command::RenameVariant { table, field, .. }
            | Command::DropVariant { table, field, .. } => {
                self.define_variant(table.0, field.0, command);
            }
            Command::RenameField { table, field, name } => {
                let table = self.table_mut(table.0);
                let place = table.place(field.0).unwrap();
                table.fields[place].name = name;
            }
            Command::CreateIndex { name, table, fields, descending, collated, unique } => {
                let fields = fields.iter().map(|field| field.0).collect();
                let descending = descending.iter().map(|field| field.0).collect();
                let collated = collated.into_iter().map(|of| (of.field.0, of.locale)).collect();
                let index = Index { name, table: table.0, fields, descending, collated, unique };
                self.indexes.insert(self.next_index, index);
                self.next_index += 1;
            }
            Command::DropIndex { index } => drop(self.indexes.remove(&index.0)),
            Command::SetSingleRow { table, single } => {
                let table = self.table_mut(table.0);
                table.single = single;
                if single && table.rows.is_empty() {
                    table.insert(table.next_id, table.defaults());
                }
            }
            Command::SetHistoryIndex { table, indexed } => {
                self.table_mut(table.0).is_indexed = indexed;
            }
            Command::Custom { .. } => {}
        }
    }

    /// Returns a command as a line.
    fn line(&self, command: &Command) -> String {
        let table_name = |table: &annals::TableNumber| self.name_of(table.0);
        let field_name = |table: &annals::TableNumber, field: &annals::FieldNumber| {
            let table = self.table(table.0);
            table.fields[table.place(field.0).unwrap()].name.as_str()
        };
        match command {
            Command::CreateTable { name } => format!("create_table {name}"),
            Command::DropTable { table } => format!("drop_table {}", table_name(table)),
            Command::RenameTable { table, name } => {
                format!("rename_table {} {name}", table_name(table))
            }
            Command::AddField { table, name, ty, nullable, default } => {
                let mut line = format!("add_field {} {name} ", table_name(table));
                line += &match ty {
                    Type::Reference(to, rule) => {
                        let may_be_null = *nullable || ty.is_always_nullable();
                        format!("references {}{}", table_name(to), rule_word(*rule, may_be_null))
                    }
                    Type::Blob => "blob".to_owned(),
                    ty => format!("{ty}") + if *nullable { " null" } else { "" },
                };
                if let Some(value) = default {
                    line += " default ";
                    write_value(&mut line, value.as_ref()).unwrap();
                }
                line
            }
            Command::DropField { table, field } => {
                format!("drop_field {} {}", table_name(table), field_name(table, field))
            }
            Command::AddVariant { table, field, name } => {
                format!("add_variant {} {} {name}", table_name(table), field_name(table, field))
            }
            Command::RenameVariant { table, field, variant, name } => {
                let of = self.variant_name(table.0, field.0, *variant);
                let field = field_name(table, field);
                format!("rename_variant {} {field} {of} {name}", table_name(table))
            }
            Command::DropVariant { table, field, variant } => {
                let of = self.variant_name(table.0, field.0, *variant);
                format!("drop_variant {} {} {of}", table_name(table), field_name(table, field))
            }
            Command::RenameField { table, field, name } => {
                format!("rename_field {} {} {name}", table_name(table), field_name(table, field))
            }
            Command::CreateIndex { name, table, fields, descending, collated, unique } => {
                let verb = if *unique { "create_unique_index" } else { "create_index" };
                let word = |field| if descending.contains(field) { " desc" } else { "" };
                let column = |field| {
                    format!(
                        "{}{}{}",
                        field_name(table, field),
                        collation(field, collated),
                        word(field)
                    )
                };
                let fields: Vec<_> = fields.iter().map(column).collect();
                format!("{verb} {name} {} {}", table_name(table), fields.join(","))
            }
            Command::DropIndex { index } => format!("drop_index {}", self.indexes[&index.0].name),
            Command::SetSingleRow { table, single } => {
                format!("set_single_row {} {single}", table_name(table))
            }
            Command::SetHistoryIndex { table, indexed } => {
                let no = if *indexed { "" } else { "no_" };
                format!("{no}history_index {}", table_name(table))
            }
            Command::Custom { name } => format!("custom {name}"),
        }
    }
}

/// Returns the order of a column, if it has one of its own.
fn collation(field: &annals::FieldNumber, collated: &[annals::model::Collated]) -> String {
    let collated = collated.iter().find(|collated| collated.field == *field);
    collated.map_or(String::new(), |of| format!(" collate {}", of.locale))
}

/// Returns the words after the target of a reference.
fn rule_word(rule: annals::model::OnDelete, may_be_null: bool) -> String {
    let words = ["", " restrict", " cascade", " set_null"];
    let word = words[super::draw::RULES.iter().position(|known| *known == rule).unwrap()];
    // A required reference restricts, unless it says something else.
    match (word, may_be_null) {
        (" restrict", false) => " required".to_owned(),
        (word, false) => format!("{word} required"),
        (word, true) => word.to_owned(),
    }
}
