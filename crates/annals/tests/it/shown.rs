//! What `{:?}` shows of handles: a line, and no rows.

use std::fmt::Debug;

use annals::{Command, FieldNumber, IndexNumber, Options, RowId, TableNumber, Txid, Type};

annals::schema!("tutorial.schema");

/// Stands in keys and rows.
const SECRET: &str = "Louise Michel of 24 boulevard Ornano";

fn assert_brief(what: &str, handle: &dyn Debug) {
    let shown = format!("{handle:?}");
    let bytes = format!("{:?}", SECRET.as_bytes());
    assert!(shown.len() < 500, "{what} has {} bytes: {:.200}", shown.len(), shown);
    assert!(!shown.contains('\n') && !shown.contains(SECRET), "{what}: {shown}");
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "{what}: {shown}");
}

#[test]
fn a_handle_is_shown_as_a_line_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown.annals");
    let db = tutorial::Database::open(&path).unwrap();
    let mut subscription = db.subscribe();
    let city = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: SECRET })?)).unwrap();
    let handle = &*db;
    let mut tx = db.begin().unwrap();
    tx.insert(tutorial::city::New { name: &SECRET[1..] }).unwrap();
    assert_brief("a typed transaction", &tx);
    assert_brief("a view of it", &tx.as_dynamic().view());
    assert_brief("its table", &tx.city());
    assert_brief("an edit", &tx.edit(city).unwrap());
    tx.commit().unwrap();
    assert!(subscription.next().is_some());
    let now = db.read();
    let city_table = now.as_dynamic().table(TableNumber(0)).unwrap();
    let index = now.as_dynamic().index(IndexNumber(0)).unwrap();
    let changes = db.changes(Txid(1)..).unwrap();
    let history = db.history_of(city).unwrap();
    let reader = tutorial::Database::open_read_only(&path).unwrap();
    let mut index_rows = index.rows();
    assert!(index_rows.next().is_some());
    let shown: [(&str, &dyn Debug); 17] = [
        ("a typed database", &db),
        ("a database", handle),
        ("a typed snapshot", &now),
        ("a snapshot", now.as_dynamic()),
        ("a view", &**now.as_dynamic()),
        ("a typed table", &now.city()),
        ("a table", &city_table),
        ("rows", &city_table.rows()),
        ("a vector", &city_table.vector(FieldNumber(0), RowId(0), 2).unwrap()),
        ("an index", &index),
        ("rows of an index", &index_rows),
        ("a typed index", &now.city().by_name()),
        ("a typed reader", &reader),
        ("a reader", &*reader),
        ("changes", &changes),
        ("a history", &history),
        ("a subscription", &subscription),
    ];
    for (what, handle) in shown {
        assert_brief(what, handle);
    }
    assert_brief("options", &Options::new());
    let pending = db.begin().unwrap().submit().unwrap();
    assert_brief("a pending commit", &pending);
    pending.wait().unwrap();
}

#[test]
fn a_store_is_shown_without_rows() {
    let mut store = annals::store::Store::new();
    store.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    let (name, ty, table) = ("a".to_owned(), Type::String, TableNumber(0));
    let field = Command::AddField { table, name, ty, nullable: false, default: None };
    store.apply_command(&field).unwrap();
    let unique = annals::store::Uniqueness::AtOnce;
    store.insert(table, RowId(0), &[SECRET.into()], unique).unwrap();
    assert_brief("a store", &store);
}
