//! What must never get into a journal, since it couldn't be read again.

use std::sync::Arc;

use annals::storage::{Directory, MemoryDirectory, SystemClock};
use annals::{
    Command, Database, ErrorKind, FieldNumber, Options, RowId, TableNumber, Type, Value, ValueRef,
};

const TABLE: TableNumber = TableNumber(0);

fn open(directory: &MemoryDirectory) -> Database {
    let directory: Arc<dyn Directory> = Arc::new(directory.clone());
    Options::new().background(false).open_in(directory, "db", Arc::new(SystemClock)).unwrap()
}

fn reference(name: &str, default: Option<Value>) -> Command {
    let (name, ty) = (name.to_owned(), Type::Reference(TABLE));
    Command::AddField { table: TABLE, name, ty, nullable: true, default }
}

#[test]
fn a_reference_that_no_row_can_have_is_refused() {
    let directory = MemoryDirectory::new();
    let db = open(&directory);
    let mut tx = db.begin().unwrap();
    tx.apply_command(&Command::CreateTable { name: "t".to_owned() }).unwrap();
    tx.apply_command(&reference("r", None)).unwrap();
    tx.insert(TABLE, &[ValueRef::Reference(RowId::MAX)]).unwrap();
    for id in [RowId::MAX.0 + 1, u64::MAX] {
        let bad = ValueRef::Reference(RowId(id));
        assert_eq!(tx.insert(TABLE, &[bad]).unwrap_err().kind(), ErrorKind::Invalid);
        let updated = tx.update(TABLE, RowId(0), FieldNumber(0), bad);
        assert_eq!(updated.unwrap_err().kind(), ErrorKind::Invalid);
        let added = tx.apply_command(&reference("s", Some(Value::Reference(RowId(id)))));
        assert_eq!(added.unwrap_err().kind(), ErrorKind::Invalid);
    }
    tx.commit().unwrap();
    drop(db);
    let db = open(&directory);
    let row = db.read().table(TABLE).unwrap().get(RowId(0)).unwrap().read(FieldNumber(0));
    assert_eq!(Some(RowId::MAX), row);
}
