//! Upgrades of a file's schema to a program's: what they do, what they refuse, and what a crash
//! leaves of them.

mod crash;
mod in_memory;
mod later;
mod newer;
mod open;

use std::path::PathBuf;

use annals::{
    Custom, Database, ErrorKind, FieldNumber, Options, Result, RowId, Schema, TableNumber,
    Transaction, Value, ValueRef, View,
};

const PEOPLE: TableNumber = TableNumber(0);
const LOG: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);
const AGE: FieldNumber = FieldNumber(1);
const NICK: FieldNumber = FieldNumber(2);

const OLD: &str = "create_table person\nadd_field person name string\n\
    add_field person age int32\ncreate_index by_age person age\n";

const MORE: &str = "rename_table person people\nadd_field people nick string default \"none\"\n\
    custom make_nicks\ndrop_field people age\ncreate_table log\nadd_field log text string\n\
    custom note\ncreate_unique_index by_nick people nick\n";

fn schema(text: &str) -> Schema {
    annals_schema::parse(text).unwrap().schema
}

fn old() -> Schema {
    schema(OLD)
}

/// The program's next version, which dropped the index, too.
fn new() -> Schema {
    schema(&format!("{OLD}drop_index by_age\n{MORE}"))
}

/// What the functions of the new program write.
#[derive(Clone, Copy, Debug)]
struct Functions {
    /// How long nicks are.
    length: usize,
}

impl Functions {
    fn nick(self, name: &str, age: i32) -> String {
        format!("{name}-{age}-{}", "x".repeat(self.length))
    }

    /// Runs one of them.
    fn run(self, custom: Custom<'_>, tx: &mut Transaction<'_>) -> Result<()> {
        match (custom.name, custom.number) {
            ("make_nicks", 0) => {
                let mut nicks = Vec::new();
                for row in tx.view().table(PEOPLE)?.rows() {
                    let row = row?;
                    assert_eq!(row.value(NICK), ValueRef::String("none"));
                    let ValueRef::String(name) = row.value(NAME) else { panic!("no name") };
                    let ValueRef::Int32(age) = row.value(AGE) else { panic!("no age") };
                    nicks.push((row.id(), self.nick(name, age)));
                }
                for (id, nick) in nicks {
                    tx.update(PEOPLE, id, NICK, ValueRef::String(&nick))?;
                }
                Ok(())
            }
            ("note", 1) => {
                // The upgrade is durable all the same.
                tx.set_level(annals::Level::Soft);
                let rows = tx.view().table(PEOPLE)?.len();
                tx.insert(LOG, &[ValueRef::String(&format!("{rows} people"))]).map(drop)
            }
            other => panic!("no such function: {other:?}"),
        }
    }
}

const FUNCTIONS: Functions = Functions { length: 0 };

/// Returns a folder with a database of the old program.
fn filled() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.annals");
    let database = Options::new().open(&path).unwrap();
    fill(&database);
    database.close().unwrap();
    (folder, path)
}

/// Writes rows with the old schema.
fn fill(database: &Database) {
    database.upgrade(&old(), &mut |_, _| panic!("no functions")).unwrap();
    database
        .write(|tx| {
            for (name, age) in [("Ada", 36), ("Ada", 12), ("Bob", 50)] {
                tx.insert(PEOPLE, &[ValueRef::String(name), ValueRef::Int32(age)])?;
            }
            tx.delete(PEOPLE, RowId(1))?;
            tx.insert(PEOPLE, &[ValueRef::String("Eve"), ValueRef::Int32(7)]).map(drop)
        })
        .unwrap();
}

/// Returns all rows of a table, as they are.
fn rows(view: &View, table: TableNumber) -> Vec<(u64, Vec<Value>)> {
    let fields = view.schema().table(table).unwrap().fields.clone();
    let values = |row: annals::Row<'_>| {
        fields.iter().map(|field| row.value(field.number).to_value()).collect::<Vec<_>>()
    };
    let all = view.table(table).unwrap().rows();
    all.map(|row| row.unwrap()).map(|row| (row.id().0, values(row))).collect()
}

const ROWS: [(u64, &str, i32); 3] = [(0, "Ada", 36), (2, "Bob", 50), (3, "Eve", 7)];

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// Checks that a view has the old schema and rows.
fn assert_old(view: &View) {
    assert_eq!(view.schema().to_text(), OLD);
    let expected = ROWS.map(|(id, name, age)| (id, vec![string(name), Value::Int32(age)]));
    assert_eq!(rows(view, PEOPLE), expected);
    view.check().unwrap();
}

/// Checks that a view has the new schema, and what its functions wrote.
fn assert_new(view: &View, functions: Functions) {
    assert_eq!(view.schema().to_text(), format!("{OLD}drop_index by_age\n{MORE}"));
    let nick = |name, age| string(&functions.nick(name, age));
    let expected = ROWS.map(|(id, name, age)| (id, vec![string(name), nick(name, age)]));
    assert!(rows(view, PEOPLE) == expected, "rows of the new schema");
    assert_eq!(rows(view, LOG), [(0, vec![string("3 people")])]);
    view.check().unwrap();
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}
