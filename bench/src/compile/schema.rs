//! A large schema as programs have them, and a program that uses all of it.

use std::fmt::Write as _;

/// The fields of a table, repeated: text, numbers, a nullable one, a reference.
const FIELDS: [(&str, &str); 10] = [
    ("code", "string"),
    ("title", "string"),
    ("note", "string null"),
    ("quantity", "int64"),
    ("level", "int32"),
    ("ratio", "float64"),
    ("active", "bool"),
    ("changed", "timestamp null"),
    ("parent", "references"),
    ("tags", "bytes"),
];

/// Returns the name of a table.
fn table(number: u32) -> String {
    format!("table_{number:03}")
}

/// Returns the name of a field: the first ten are called what they are, those after have a number.
fn field(number: u32) -> (String, &'static str) {
    let place = number as usize;
    let (name, ty) = FIELDS[place % FIELDS.len()];
    match place / FIELDS.len() {
        0 => (name.to_owned(), ty),
        again => (format!("{name}_{again}"), ty),
    }
}

/// Writes the schema: each table refers to the previous one, has a unique index on a string, every second one an
/// index on a number, every fourth one on two fields.
pub(super) fn text(tables: u32, fields: u32) -> String {
    let mut text = String::new();
    for number in 0..tables {
        let own = table(number);
        // Writing to a string can't fail.
        let _infallible = writeln!(text, "create_table {own}");
        for (name, ty) in (0..fields).map(field) {
            let target =
                if ty == "references" { table(number.saturating_sub(1)) } else { String::new() };
            let _infallible = writeln!(text, "add_field {own} {name} {ty} {target}");
        }
        let indexes = [
            (1, "create_unique_index", "by_code", "code"),
            (2, "create_index", "by_level", "level"),
            (4, "create_index", "by_parent_and_changed", "parent,changed"),
        ];
        for (every, command, name, fields) in indexes {
            if number % every == 0 {
                let _infallible = writeln!(text, "{command} {own}_{name} {own} {fields}");
            }
        }
    }
    text
}

/// The code of a program without a schema: open, and close.
pub(super) const BARE: &str = "\
//! A program without a schema.
fn main() -> annals::Result<()> {
    let path = std::env::args().nth(1).expect(\"a path\");
    let database = annals::Options::new().open(path)?;
    println!(\"{}\", database.read().txid());
    database.close()
}
";

/// A library that exports the whole API of the schema.
pub(super) const LIBRARY: &str = "\
//! A schema, for others to use.
annals::schema!(\"../large.schema\");
";

/// Writes a program that inserts a row of each table, changes it, finds it by key and in a scan, and prints the sum
/// of the values read: see [`expected`].
pub(super) fn program(tables: u32) -> String {
    let mut text = "\
//! A program that uses each table of a schema.
annals::schema!(\"../large.schema\");

fn main() -> annals::Result<()> {
    let path = std::env::args().nth(1).expect(\"a path\");
    let database = large::Database::open(path)?;
    let mut sum = 0;
"
    .to_owned();
    for own in (0..tables).map(table) {
        let _infallible = write!(
            text,
            "    database.write(|tx| {{
        let row = large::{own}::New {{ code: \"{own}\", quantity: 5, ..Default::default() }};
        let id = tx.insert(row)?;
        tx.edit(id)?.set_level(2)?;
        Ok(())
    }})?;
    let now = database.read();
    if let Some(row) = now.{own}().by_code().get(\"{own}\")? {{
        sum += row.quantity();
    }}
    for row in now.{own}().iter() {{
        sum += i64::from(row?.level());
    }}
"
        );
    }
    text + "    println!(\"{sum}\");\n    database.close()\n}\n"
}

/// Returns what that program prints.
pub(super) fn expected(tables: u32) -> u32 {
    7 * tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_what_was_asked_for() {
        let text = text(5, 23);
        let file = annals_schema::parse_files(&[("large.schema", &text)]).unwrap();
        let tables = file.schema.tables();
        assert_eq!(tables.iter().map(|table| table.fields.len()).collect::<Vec<_>>(), [23; 5]);
        assert_eq!(file.schema.indexes().len(), 5 + 3 + 2);
    }
}
