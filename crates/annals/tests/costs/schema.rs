//! A command of a schema costs the same in a small schema and in a large one.

use annals::{Command, Database, Options, TableNumber, Type};

use crate::counting::{alone, times};

/// Applies the commands that make so many tables of two fields and an index, each in a transaction of
/// its own or all in one; then changes and drops them.
fn evolve(database: &Database, tables: u32, alone: bool) -> annals::Result<()> {
    let mut tx = database.begin()?;
    for number in 0..tables {
        let table = TableNumber(number);
        let field = |name: &str| Command::AddField {
            table,
            name: name.to_owned(),
            ty: Type::Int64,
            nullable: false,
            default: None,
        };
        let (name, fields) = (format!("i{number}"), vec![annals::FieldNumber(0)]);
        let index = Command::CreateIndex {
            name,
            table,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: false,
        };
        let created = Command::CreateTable { name: format!("t{number}") };
        let renamed = Command::RenameTable { table, name: format!("u{number}") };
        for command in [created, field("a"), field("b"), index, renamed] {
            tx.apply_command(&command)?;
        }
        if alone {
            tx.commit()?;
            tx = database.begin()?;
        }
    }
    for number in (0..tables).step_by(2) {
        tx.apply_command(&Command::DropTable { table: TableNumber(number) })?;
    }
    tx.commit().map(drop)
}

/// Returns how often memory was asked for: to make such a schema, and to replay it.
fn asked(tables: u32, each_alone: bool) -> [u64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.annals");
    let options = Options::new().background(false).level(annals::Level::Soft);
    let made = times(|| {
        let database = options.open(&path).unwrap();
        evolve(&database, tables, each_alone).unwrap();
        database.close().unwrap();
    });
    let replayed = times(|| drop(options.open(&path).unwrap()));
    [made, replayed]
}

#[test]
fn a_command_of_the_schema_costs_the_same_whatever_was_before_it() {
    let _turn = alone();
    for each_alone in [false, true] {
        let (small, large) = (asked(300, each_alone), asked(1200, each_alone));
        for (small, large) in small.into_iter().zip(large) {
            // Four times as many commands; if each copied the schema, it would be sixteen times as much.
            assert!(large < small * 7, "{small} and {large} allocations, alone: {each_alone}");
        }
    }
}
