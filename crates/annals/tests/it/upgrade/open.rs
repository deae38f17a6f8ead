//! Opening a file with a program of another version.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use annals::{Command, Custom, Database, Error, ErrorKind, Options, Schema, Value, ValueRef};

use super::{
    FUNCTIONS, MORE, NICK, OLD, PEOPLE, assert_new, assert_old, filled, kind, new, old, rows,
    schema, string,
};

annals::schema!("tests/it/upgrade/people.joedbi", "tests/it/upgrade/people.joedbc",);

fn open(path: &Path, schema: &Schema) -> annals::Result<Database> {
    Options::new().open_schema_with(path, schema, &mut |custom, tx| FUNCTIONS.run(custom, tx))
}

/// Checks that a file is as the old program left it.
fn assert_untouched(path: &Path) {
    let database = Options::new().open_schema(path, &old()).unwrap();
    assert_old(&database.read());
    assert_eq!(database.read().txid(), annals::Txid(2));
}

#[test]
fn an_older_file_is_upgraded_in_one_transaction() {
    let (_folder, path) = filled();
    let before = Options::new().open_read_only(&path).unwrap();
    let database = open(&path, &new()).unwrap();
    assert_new(&database.read(), FUNCTIONS);
    assert_eq!(database.read().txid(), annals::Txid(3), "two transactions, and the upgrade");
    database.close().unwrap();
    // Again there is nothing to do, and nothing is written.
    let database = open(&path, &new()).unwrap();
    assert_eq!(database.read().txid(), annals::Txid(3));
    assert_old(&before.read());
}

#[test]
fn a_new_file_is_upgraded_from_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.annals");
    let mut names = Vec::new();
    let database = Options::new().open_schema_with(&path, &new(), &mut |custom, _| {
        names.push((custom.name.to_owned(), custom.number));
        Ok(())
    });
    assert_eq!(database.unwrap().read().txid(), annals::Txid(1));
    assert_eq!(names, [("make_nicks".to_owned(), 0), ("note".to_owned(), 1)]);
}

#[test]
fn a_function_that_fails_leaves_the_file_as_it_was() {
    let (_folder, path) = filled();
    let mut fail = |custom: Custom<'_>, tx: &mut annals::Transaction<'_>| {
        FUNCTIONS.run(custom, tx)?;
        if custom.number == 1 { Err(Error::invalid("no paper")) } else { Ok(()) }
    };
    let error = Options::new().open_schema_with(&path, &new(), &mut fail).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(
        text.ends_with("people.annals: upgrading the schema: `custom note`: no paper"),
        "{text}"
    );
    assert_untouched(&path);
    // Of a file that was new, an empty one is left, which is upgraded from nothing again.
    let empty = path.with_file_name("empty.annals");
    let error = Options::new().open_schema_with(&empty, &new(), &mut fail).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(open(&empty, &new()).unwrap().read().txid(), annals::Txid(1));
}

#[test]
fn a_function_that_panics_leaves_the_file_as_it_was() {
    let (_folder, path) = filled();
    let mut panic = |custom: Custom<'_>, tx: &mut annals::Transaction<'_>| {
        FUNCTIONS.run(custom, tx)?;
        panic!("on purpose")
    };
    let opening =
        AssertUnwindSafe(|| Options::new().open_schema_with(&path, &new(), &mut panic).map(drop));
    assert!(catch_unwind(opening).is_err());
    assert_untouched(&path);
    // A database that stays open continues, too.
    let database = Options::new().open(&path).unwrap();
    let upgrading = AssertUnwindSafe(|| database.upgrade(&new(), &mut panic));
    assert!(catch_unwind(upgrading).is_err());
    assert_old(&database.read());
    let run = &mut |custom: Custom<'_>, tx: &mut annals::Transaction<'_>| FUNCTIONS.run(custom, tx);
    database.upgrade(&new(), run).unwrap();
    assert_new(&database.read(), FUNCTIONS);
}

#[test]
fn a_function_changes_rows_and_never_the_schema() {
    let (_folder, path) = filled();
    let error = Options::new().open_schema_with(&path, &new(), &mut |_, tx| {
        tx.apply_command(&Command::CreateTable { name: "sneaky".to_owned() })
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("`custom make_nicks`: the function changed the schema"), "{text}");
    assert_untouched(&path);
}

#[test]
fn a_schema_with_functions_wants_them() {
    let (_folder, path) = filled();
    let error = Options::new().open_schema(&path, &new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("gave no custom function `make_nicks`"), "{error}");
    assert_untouched(&path);
    // Once the file is upgraded there are none to run.
    open(&path, &new()).unwrap().close().unwrap();
    Options::new().open_schema(&path, &new()).unwrap();
}

#[test]
fn a_unique_index_that_rows_contradict_names_line_and_rows() {
    let (_folder, path) = filled();
    let database = Options::new().open(&path).unwrap();
    let again = [ValueRef::String("Ada"), ValueRef::Int32(1)];
    database.write(|tx| tx.insert(PEOPLE, &again)).unwrap();
    database.close().unwrap();
    let unique = schema(&format!("{OLD}create_unique_index by_name person name\n"));
    let error = Options::new().open_schema(&path, &unique).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unique);
    let text = error.to_string();
    assert!(text.contains("`create_unique_index by_name person name`: "), "{text}");
    assert!(text.contains("rows 0 and 4"), "{text}");
    let database = Options::new().open_schema(&path, &old()).unwrap();
    assert_eq!(database.read().txid(), annals::Txid(3));
    database.close().unwrap();
    // A function may repair that first: indexes come last.
    let repaired =
        schema(&format!("{OLD}custom repair\ncreate_unique_index by_name person name\n"));
    let mut repair = |_: Custom<'_>, tx: &mut annals::Transaction<'_>| {
        tx.update(PEOPLE, annals::RowId(4), super::NAME, ValueRef::String("Zoe"))
    };
    let database = Options::new().open_schema_with(&path, &repaired, &mut repair).unwrap();
    assert_eq!(database.read().schema().indexes().len(), 2);
}

#[test]
fn added_fields_read_as_their_default_and_dropped_ones_are_gone() {
    let (_folder, path) = filled();
    let more = "add_field person mood string default \"good\"\nadd_field person boss references \
        person\nadd_field person born int16\ndrop_field person age\n";
    let program = schema(&format!("{OLD}drop_index by_age\n{more}"));
    let database = Options::new().open_schema(&path, &program).unwrap();
    let values = |name| vec![string(name), string("good"), Value::Null, Value::Int16(0)];
    assert_eq!(
        rows(&database.read(), PEOPLE),
        [(0, values("Ada")), (2, values("Bob")), (3, values("Eve"))]
    );
}

#[test]
fn indexes_are_compared_as_a_set_and_brought_up() {
    let (_folder, path) = filled();
    let fields = "create_table person\nadd_field person name string\nadd_field person age int32\n";
    let program = schema(&format!(
        "{fields}create_index by_both person age,name\ncreate_index by_age person age\n"
    ));
    let database = Options::new().open_schema(&path, &program).unwrap();
    assert_eq!(database.read().schema().indexes().len(), 2);
    assert_eq!(database.read().txid(), annals::Txid(3));
    database.close().unwrap();
    // A program that doesn't know them leaves them alone.
    let error = Options::new().open_schema(&path, &schema(fields)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    let text = error.to_string();
    assert!(
        text.contains("newer") && text.contains("`create_index by_both person age,name`"),
        "{text}"
    );
    Options::new().open_schema_read_only(&path, &schema(fields)).unwrap();
    // One that drops them, and wants another definition, says so.
    let known = "create_index by_age person age\ncreate_index by_both person age,name\n";
    let drops = "drop_index by_both\ndrop_index by_age\ncreate_index by_age person name\n";
    let other = schema(&format!("{fields}{known}{drops}"));
    let database = Options::new().open_schema(&path, &other).unwrap();
    assert_eq!(database.read().schema().indexes()[0].fields, [super::NAME]);
}

#[test]
fn a_newer_file_is_for_reading_only() {
    let (_folder, path) = filled();
    let more = "rename_table person people\nadd_field people nick string\n";
    let newer = schema(&format!("{OLD}{more}"));
    Options::new().open_schema(&path, &newer).unwrap().close().unwrap();
    let error = Options::new().open_schema(&path, &old()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    let text = error.to_string();
    assert!(
        text.ends_with(
            "newer schema than the program, which doesn't know `rename_table person people`, `add_field people nick \
             string`; open it read-only, or use a newer program"
        ),
        "{text}"
    );
    let reader = Options::new().open_schema_read_only(&path, &old()).unwrap();
    assert_eq!(rows(&reader.read(), PEOPLE).len(), 3);
    assert_eq!(reader.read().schema().table(PEOPLE).unwrap().field(NICK).unwrap().name, "nick");
}

#[test]
fn a_newer_file_without_what_the_program_needs_cant_be_read() {
    let (_folder, path) = filled();
    open(&path, &new()).unwrap().close().unwrap();
    let error = Options::new().open_schema_read_only(&path, &old()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    let text = error.to_string();
    assert!(
        text.ends_with(
            "needs: field `age` of table `person` (by `drop_field people age`), index \
             `create_index by_age person age` (by `drop_index by_age`); use a newer program"
        ),
        "{text}"
    );
    let error = Options::new().open_schema(&path, &old()).unwrap_err();
    assert!(error.to_string().contains("doesn't know `rename_table person people`, "), "{error}");
}

#[test]
fn an_older_file_is_read_after_it_was_upgraded() {
    let (_folder, path) = filled();
    let error = Options::new().open_schema_read_only(&path, &new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("open it for writing once"), "{error}");
    open(&path, &new()).unwrap().close().unwrap();
    let reader = Options::new().open_schema_read_only(&path, &new()).unwrap();
    assert_new(&reader.read(), FUNCTIONS);
    // An index more than the program has does no harm.
    let without = schema(&format!("{OLD}drop_index by_age\n{MORE}drop_index by_nick\n"));
    Options::new().open_schema_read_only(&path, &without).unwrap();
}

#[test]
fn another_schema_is_neither_read_nor_written() {
    let (_folder, path) = filled();
    let other = schema(&OLD.replace("int32", "int64"));
    for error in [
        Options::new().open_schema(&path, &other).unwrap_err(),
        Options::new().open_schema_read_only(&path, &other).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
        assert!(error.to_string().contains("command 3 of tables and fields"), "{error}");
    }
    assert_untouched(&path);
    assert_eq!(kind(Options::new().open_schema_read_only("no/such", &old())), ErrorKind::NotFound);
}

#[test]
fn of_many_that_race_to_upgrade_one_does() {
    let (_folder, path) = filled();
    let runs = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut run = |custom: Custom<'_>, tx: &mut annals::Transaction<'_>| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    FUNCTIONS.run(custom, tx)
                };
                loop {
                    match Options::new().open_schema_with(&path, &new(), &mut run) {
                        Ok(database) => {
                            assert_new(&database.read(), FUNCTIONS);
                            return database.close().unwrap();
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(runs.into_inner(), 2, "each function ran once");
}

#[test]
fn of_many_threads_with_one_handle_one_upgrades() {
    let (_folder, path) = filled();
    let runs = AtomicUsize::new(0);
    let database = Options::new().open(&path).unwrap();
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let run = &mut |custom: Custom<'_>, tx: &mut annals::Transaction<'_>| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    (0..1000).for_each(|_| std::thread::yield_now());
                    FUNCTIONS.run(custom, tx)
                };
                database.upgrade(&new(), run).unwrap();
                assert_new(&database.read(), FUNCTIONS);
            });
        }
    });
    assert_eq!(runs.into_inner(), 2, "each function ran once");
    assert_eq!(database.read().txid(), annals::Txid(3));
}

#[test]
fn two_files_are_one_schema() {
    use two_files::people;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.annals");
    let database = people::Database::open(&path).unwrap();
    let lille = database.write(|tx| Ok(tx.insert(people::city::New { name: "Lille" })?)).unwrap();
    let remi = people::person::New { name: "R\u{e9}mi", home: Some(lille) };
    database.write(|tx| Ok(tx.insert(remi)?)).unwrap();
    let now = database.read();
    assert_eq!(now.city().len(), 1, "the rows of the script are not the schema's");
    assert!(now.city().by_name().get("Lille").unwrap().is_some());
    assert!(people::SCHEMA.ends_with("create_index person_by_home person home\n"));
}

#[test]
fn single_rows_come_behind_the_functions_and_go_before_them() {
    let (_folder, path) = filled();
    let settings = "create_table settings\nadd_field settings size int8 default 7\n";
    let program = schema(&format!("{OLD}{settings}set_single_row settings true\n"));
    let database = Options::new().open_schema(&path, &program).unwrap();
    let table = annals::TableNumber(1);
    assert_eq!(rows(&database.read(), table), [(0, vec![Value::Int8(7)])]);
    assert!(database.write(|tx| tx.insert(table, &[ValueRef::Int8(1)])).is_err());
    database.close().unwrap();
    // A function may add rows as soon as the program allows several.
    let single_row = "set_single_row settings true\nset_single_row settings false\n";
    let several = schema(&format!("{OLD}{settings}{single_row}custom more\n"));
    let mut more = |_: Custom<'_>, tx: &mut annals::Transaction<'_>| {
        tx.insert(table, &[ValueRef::Int8(1)]).map(drop)
    };
    let database = Options::new().open_schema_with(&path, &several, &mut more).unwrap();
    assert_eq!(rows(&database.read(), table).len(), 2);
    database.close().unwrap();
    // And must take them away before there is one only.
    let single = |functions: &str| {
        let text = format!("{OLD}{settings}{single_row}custom more\n{functions}");
        schema(&format!("{text}set_single_row settings true\n"))
    };
    let error = Options::new().open_schema(&path, &single("")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`set_single_row settings true`: ") && text.contains("2 rows"), "{text}");
    let mut fewer =
        |_: Custom<'_>, tx: &mut annals::Transaction<'_>| tx.delete(table, annals::RowId(0));
    let program = single("custom fewer\n");
    let database = Options::new().open_schema_with(&path, &program, &mut fewer).unwrap();
    assert_eq!(rows(&database.read(), table), [(1, vec![Value::Int8(1)])]);
}

#[test]
fn an_enforced_reference_that_leads_nowhere_fails_the_upgrade() {
    let (_folder, path) = filled();
    let program = schema(&format!(
        "{OLD}add_field person boss references person restrict\ncustom set_boss\n"
    ));
    let boss = annals::FieldNumber(2);
    let set = |id| {
        let program = program.clone();
        Options::new().open_schema_with(&path, &program, &mut |_, tx| {
            tx.update(PEOPLE, annals::RowId(0), boss, ValueRef::Reference(annals::RowId(id)))
        })
    };
    let error = set(77).unwrap_err();
    assert!(error.to_string().contains("upgrading the schema: "), "{error}");
    assert!(error.to_string().contains("77"), "{error}");
    assert_untouched(&path);
    set(2).unwrap();
}

#[test]
fn the_schema_stays_while_a_program_relies_on_it() {
    let (_folder, path) = filled();
    let database = open(&path, &new()).unwrap();
    let drop_index = Command::DropIndex { index: annals::IndexNumber(0) };
    let error = database.write(|tx| tx.apply_command(&drop_index)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("relies on it"), "{error}");
    assert_new(&database.read(), FUNCTIONS);
    database.close().unwrap();
    // Tools open it without a schema.
    let database = Options::new().open(&path).unwrap();
    let custom = Command::Custom { name: "by_hand".to_owned() };
    database.write(|tx| tx.apply_command(&custom)).unwrap();
}
