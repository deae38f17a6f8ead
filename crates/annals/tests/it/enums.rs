//! Enums: variants in Rust, and what becomes of them when the schema changes.

use annals::model::Variants;
use annals::storage::MemoryDirectory;
use annals::{
    Command, Database, ErrorKind, FieldNumber, RowId, TableNumber, Type, Value, ValueRef,
};

use super::generated_for_tests::enums;
use crate::database_model::open;
use enums::job::{self, Kind, State};

const T: TableNumber = TableNumber(0);
const STATE: FieldNumber = FieldNumber(0);

#[test]
fn variants_are_written_read_and_found_in_order() {
    let db = enums::Database::in_memory().unwrap();
    let ids = db.write(|tx| {
        let a = tx.insert(job::New { name: "a", ..Default::default() })?;
        let b = tx.insert(job::New { name: "b", state: State::Paused, kind: None })?;
        let first = tx.insert_vector(job::Columns {
            name: &["c", "d"],
            state: &[State::Active, State::Ready],
            kind: &[Some(Kind::TwoWords), None],
        })?;
        tx.edit(b)?.set_kind(Kind::Self_)?.set_state(State::Active)?;
        Ok([a, b, first])
    });
    let [a, b, first] = ids.unwrap();
    let now = db.read();
    let row = now.job().require(a).unwrap();
    assert_eq!((row.state(), row.kind()), (State::Ready, Some(Kind::Type)));
    let row = now.job().require(b).unwrap().to_owned();
    assert_eq!((row.state, row.kind), (State::Active, Some(Kind::Self_)));
    let names = |state| {
        let rows = now.job().by_state().with_state(state);
        rows.map(|row| row.unwrap().name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(State::Active), names(State::Paused)),
        (vec!["b".into(), "c".into()], vec![])
    );
    let states: Vec<_> = now.job().by_state().iter().map(|row| row.unwrap().state()).collect();
    assert!(states.is_sorted_by(|a, b| a >= b), "{states:?}");
    let column = now.job().vector_of(job::STATE, first, 2).unwrap();
    assert_eq!(column, [State::Active, State::Ready]);
    let column = now.job().vector_of(job::KIND, first, 2).unwrap();
    assert_eq!(column, [Some(Kind::TwoWords), None]);
    let version = db.history_of(b).unwrap().last().unwrap().unwrap();
    assert!(format!("{:?}", version.change).contains("Active"), "{version:?}");
}

#[test]
fn a_variant_has_the_name_of_the_schema() {
    assert_eq!(State::Active.to_string(), "active");
    assert_eq!("active".parse(), Ok(State::Active));
    assert_eq!("two_words".parse(), Ok(Kind::TwoWords));
    let error = "running".parse::<State>().unwrap_err().to_string();
    assert!(error.contains("`running` is not a variant") && error.contains("paused"), "{error}");
    assert_eq!(serde_json::to_string(&State::Active).unwrap(), "\"active\"");
    assert_eq!(serde_json::from_str::<State>("\"paused\"").unwrap(), State::Paused);
    assert!(serde_json::from_str::<State>("\"running\"").is_err());
    assert!(State::Ready < State::Paused);
    assert_eq!(State::default(), State::Ready);
}

#[test]
fn a_dropped_variant_cannot_be_written() {
    let db = enums::Database::in_memory().unwrap();
    let error = db
        .write(|tx| Ok(tx.insert(job::New { name: "x", state: State::Done, kind: None })?))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

/// A table of an enum and a row of each variant.
fn colours() -> Database {
    let db = open(&MemoryDirectory::new());
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        let ty = Type::Enum(Variants::of(["red", "green", "blue"]).unwrap());
        let (table, name) = (T, "colour".to_owned());
        tx.apply_command(&Command::AddField { table, name, ty, nullable: false, default: None })
    })
    .unwrap();
    for colour in ["red", "green", "blue"] {
        db.write(|tx| {
            let value = named(tx.view().schema(), colour);
            tx.insert(T, &[value.as_ref()])
        })
        .unwrap();
    }
    db
}

fn named(schema: &annals::Schema, name: &str) -> Value {
    let ty = schema.table(T).unwrap().field(STATE).unwrap().ty;
    ty.parse_written(name).unwrap()
}

fn apply(db: &Database, command: &Command) -> annals::Result<()> {
    db.write(|tx| tx.apply_command(command))
}

fn dropping(variant: u16) -> Command {
    Command::DropVariant { table: T, field: STATE, variant }
}

#[test]
fn a_variant_is_dropped_when_no_row_has_it() {
    let db = colours();
    let then = db.read().txid();
    let error = apply(&db, &dropping(1)).unwrap_err();
    assert!(error.to_string().contains("cannot drop variant `green`: row 1 of `t`"), "{error}");
    let first = apply(&db, &dropping(0)).unwrap_err();
    assert!(first.to_string().contains("needs its variant \"red\""), "{first}");
    db.write(|tx| tx.delete(T, RowId(1))).unwrap();
    apply(&db, &dropping(1)).unwrap();
    let name = "green".to_owned();
    apply(&db, &Command::AddVariant { table: T, field: STATE, name }).unwrap();
    let name = "azure".to_owned();
    apply(&db, &Command::RenameVariant { table: T, field: STATE, variant: 2, name }).unwrap();
    assert_eq!(
        named(db.read().schema(), "green"),
        Value::Enum(Variants::of(["a", "b", "c", "green"]).unwrap().get(3).unwrap()),
        "the number isn't used again"
    );

    // The past has the numbers that it had, by their present names.
    let past = db.at(then).unwrap();
    let texts: Vec<_> =
        past.table(T).unwrap().rows().map(|row| row.unwrap().value(STATE).to_string()).collect();
    assert_eq!(texts, ["red", "green", "azure"]);
    let row = past.table(T).unwrap().get(RowId(2)).unwrap();
    assert_eq!(row.value(STATE).to_string(), "azure");
    let versions = db.history_of(T, RowId(2)).unwrap();
    let shown: Vec<_> = versions.map(|version| format!("{:?}", version.unwrap().change)).collect();
    assert!(shown[0].contains("azure"), "{shown:?}");
    assert!(past.table(T).unwrap().get(RowId(1)).unwrap().value(STATE) != ValueRef::Null);
}

/// An older program can't name all variants of a newer file: it reads the rows that have others.
#[test]
fn a_program_without_a_variant_of_the_file_only_reads_it() {
    let old = "create_table t\nadd_field t c enum(a,b)\n";
    let new = annals_schema::parse(&format!("{old}add_variant t c x\n")).unwrap().schema;
    let old = annals_schema::parse(old).unwrap().schema;
    let annals_schema::Relation::Newer(newer) = annals_schema::compare(&new, &old) else {
        panic!("the file is newer")
    };
    assert_eq!(newer.lines, ["add_variant t c x"]);
    assert!(newer.missing.is_empty());
    let annals_schema::Relation::Upgrade(plan) = annals_schema::compare(&old, &new) else {
        panic!("the file is older")
    };
    assert_eq!(plan.to_string(), "add_variant t c x  # no row has it yet");
}

#[test]
fn rows_with_a_variant_of_a_newer_program_are_errors_and_all_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.annals");
    let newer = format!("{}add_variant job state stalled\n", include_str!("enums.schema"));
    let newer = annals_schema::parse(&newer).unwrap().schema;
    let db = annals::Options::new().open_schema(&path, &newer).unwrap();
    let state = newer.table(T).unwrap().field(FieldNumber(1)).unwrap().ty;
    let row = |tx: &mut annals::Transaction<'_>, name, variant| {
        let state = state.parse_written(variant).unwrap();
        tx.insert(T, &[ValueRef::String(name), state.as_ref(), ValueRef::Null])
    };
    let ids = db.write(|tx| Ok((row(tx, "known", "ready")?, row(tx, "unknown", "stalled")?)));
    let (known, unknown) = ids.unwrap();
    let (known, unknown) = (job::Id::from(known), job::Id::from(unknown));
    db.close().unwrap();

    let error = enums::Database::open(&path).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("`add_variant job state stalled`"), "{error}");
    let now = enums::Database::open_read_only(&path).unwrap().read();
    let is_newer = |error: annals::Error| {
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
        assert!(error.to_string().contains("which a newer program has added"), "{error}");
    };
    assert_eq!(now.job().require(known).unwrap().name(), "known");
    is_newer(now.job().get(unknown).map(drop).unwrap_err());
    let rows: Vec<_> = now.job().iter().collect();
    assert!(rows[0].is_ok());
    is_newer(rows.into_iter().nth(1).unwrap().map(drop).unwrap_err());
    assert_eq!(now.job().by_state().iter().filter(Result::is_err).count(), 1);
    is_newer(now.job().query().count().map(drop).unwrap_err());
    let slices = |count| now.job().slices_of(job::STATE, known, count).unwrap();
    is_newer(slices(2).find_map(Result::err).unwrap());
    assert_eq!(&*slices(1).next().unwrap().unwrap(), [State::Ready]);
}
