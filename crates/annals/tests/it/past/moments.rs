//! Moments: by number, time and comment; and the past through a schema that came later.

use annals::{
    Command, Database, ErrorKind, FieldNumber, IndexNumber, Moment, Reader, RowId, TableNumber,
    Timestamp, Txid, Type, Value, ValueRef,
};

use super::{NAME, TABLE, World, content, options};

/// Makes a database whose transactions have these times, each with its number as comment.
fn dated(times: &[i64]) -> World {
    let mut world = World::new(1, options());
    for (at, &time) in times.iter().enumerate() {
        world.write(|tx| {
            tx.set_time(Timestamp(time));
            tx.comment(&format!("number {}", at % 3))?;
            tx.insert(TABLE, &[ValueRef::Null, ValueRef::Int64(time), ValueRef::Null]).map(drop)
        });
    }
    world
}

fn rows(db: &Database, moment: impl Into<Moment>) -> (u64, u64) {
    let then = db.at(moment).unwrap();
    (then.txid().0, then.table(TABLE).unwrap().len())
}

#[test]
fn a_time_means_the_last_transaction_that_is_not_later() {
    // Explicit times may go back.
    let world = dated(&[-100, -50, -80, -50, -10]);
    let db = world.database();
    // Transaction 1 made the table, at the time of the clock.
    for (time, txid) in
        [(-101, 0_u64), (-100, 2), (-81, 2), (-80, 4), (-51, 4), (-50, 5), (-10, 6), (0, 6)]
    {
        assert_eq!(rows(db, Timestamp(time)), (txid, txid.saturating_sub(1)), "{time}");
    }
    let now = db.read();
    assert_eq!(rows(db, Timestamp(i64::MAX)).0, now.txid().0);
}

#[test]
fn a_comment_means_the_last_transaction_that_has_it() {
    let mut world = dated(&[1, 2, 3, 4, 5]);
    let comment = |text: &str| Moment::Comment(text.to_owned());
    let look = |world: &World| {
        let db = world.database();
        assert_eq!(rows(db, comment("number 0")).0, 5);
        assert_eq!(rows(db, comment("number 2")).0, 4);
        let error = db.at(comment("number")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("no transaction has the comment \"number\""), "{error}");
    };
    look(&world);
    world.restart(false);
    look(&world);
    world.change();
    look(&world);
}

/// The state that was read last is kept; a field that is added since is in it when it is read again.
#[test]
fn a_past_state_is_read_through_the_schema_of_now() {
    let world = dated(&[1, 2, 3]);
    let db = world.database();
    for field in 3..6 {
        let then = db.at(Txid(3)).unwrap();
        let all: Vec<_> = then.table(TABLE).unwrap().rows().map(Result::unwrap).collect();
        let last = FieldNumber(field - 1);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|row| row.value(last) == ValueRef::Null));
        let (name, ty) = (format!("later{field}"), Type::Int64);
        let add = Command::AddField { table: TABLE, name, ty, nullable: true, default: None };
        db.write(|tx| tx.apply_command(&add)).unwrap();
    }
}

#[test]
fn what_is_not_there_is_said() {
    let world = dated(&[1, 2]);
    let error = world.database().at(Txid(4)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().ends_with("there is no transaction 4: the last is 3"), "{error}");
    assert!(world.database().at(Txid(0)).unwrap().table(TABLE).unwrap().is_empty());
}

#[test]
fn what_was_forgotten_is_said() {
    let mut world = dated(&[1, 2, 3]);
    assert_eq!(world.database().txid_of(Timestamp(0)).unwrap(), annals::Txid(0));
    world.restart(true);
    let db = world.database();
    for moment in [Moment::Time(Timestamp(0)), Moment::Txid(annals::Txid(2))] {
        let error = db.at(moment).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let text = error.to_string();
        let says = "was forgotten: the history begins with the state after transaction 4";
        assert!(text.contains(says), "{text}");
    }
    let error = db.read().differences(annals::Txid(2), annals::Txid(4)).unwrap_err().to_string();
    let says = "the state after transaction 2 was forgotten: the oldest state that is known is the one after \
                transaction 4; begin again with that or a newer one, and read on from transaction 5";
    assert!(error.ends_with(says), "{error}");
    let reader = Reader::open(&world.directory, NAME).unwrap();
    assert_eq!(reader.txid_of(Timestamp(i64::MAX)).unwrap(), db.read().txid());
}

#[test]
fn readers_see_the_past_too_and_snapshots_of_it_stay() {
    let mut world = World::new(2, options());
    (0..8).for_each(|_| world.change());
    world.restart(false);
    (0..8).for_each(|_| world.change());
    world.database().backfill(annals::BackfillMode::Full).unwrap();
    (0..8).for_each(|_| world.change());
    let reader = Reader::open(&world.directory, NAME).unwrap();
    let held: Vec<_> =
        world.states.keys().map(|&txid| reader.as_it_was(Txid(txid)).unwrap()).collect();
    (0..8).for_each(|_| world.change());
    world.reopen();
    for (then, expected) in held.iter().zip(world.states.values()) {
        assert!(content(then) == *expected);
    }
    let last = *world.states.keys().last().unwrap();
    assert_eq!(reader.at(Txid(last)).unwrap_err().kind(), ErrorKind::NotFound);
    reader.pull().unwrap();
    assert_eq!(reader.at(Txid(last)).unwrap().txid(), annals::Txid(last));
}

/// Rows that a later rule of the schema would refuse are read without it.
#[test]
fn the_past_is_read_through_the_present_schema() {
    let mut world = World::new(3, options());
    let name = |tx: &mut annals::Transaction<'_>, name: &str| {
        tx.insert(TABLE, &[ValueRef::String(name), ValueRef::Null, ValueRef::Null]).map(drop)
    };
    world.write(|tx| name(tx, "twice"));
    world.write(|tx| name(tx, "twice"));
    world.write(|tx| tx.delete(TABLE, RowId(1)));
    let other = TableNumber(1);
    world.write(|tx| {
        tx.apply_command(&Command::CreateIndex {
            name: "once".to_owned(),
            table: TABLE,
            fields: vec![FieldNumber(0)],
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        })?;
        let (nullable, ty) = (false, Type::Int16);
        let (name, default) = ("new".to_owned(), Some(Value::Int16(7)));
        tx.apply_command(&Command::AddField { table: TABLE, name, ty, nullable, default })?;
        tx.apply_command(&Command::RenameField {
            table: TABLE,
            field: FieldNumber(0),
            name: "title".to_owned(),
        })?;
        tx.apply_command(&Command::CreateTable { name: "settings".to_owned() })?;
        tx.insert(other, &[])?;
        tx.apply_command(&Command::SetSingleRow { table: other, single: true })?;
        tx.apply_command(&Command::DropField { table: TABLE, field: FieldNumber(1) })
    });
    let then = world.database().at(Txid(3)).unwrap();
    then.check().unwrap();
    assert_eq!(then.schema().table(TABLE).unwrap().fields[0].name, "title");
    let table = then.table(TABLE).unwrap();
    for row in table.rows() {
        assert_eq!(row.unwrap().value(FieldNumber(0)), ValueRef::String("twice"));
    }
    assert_eq!(table.len(), 2);
    assert_eq!(table.get(RowId(1)).unwrap().value(FieldNumber(3)), ValueRef::Int16(7));
    let once = then.index(IndexNumber(1)).unwrap();
    assert_eq!(once.rows().count(), 2);
    assert!(then.table(other).unwrap().single().is_err());
    let was = world.database().as_it_was(Txid(3)).unwrap();
    assert_eq!(was.schema().table(TABLE).unwrap().fields[0].name, "name");
    assert!(was.table(other).is_err());
}
