//! Forgetting history: the new segment begins with the state, and older ones go.

use annals::model::OnDelete;
use annals::reports::Older;
use annals::storage::Directory;
use annals::{
    Blob, Command, ErrorKind, FieldNumber, IndexNumber, Reader, Result, Retention, RowId,
    TableNumber, Transaction, Txid, Type, ValueRef,
};

use super::{NAME, NOW, TABLE, content, directory, history, open, split, try_replay, write};

#[test]
fn the_state_is_all_that_is_left_of_forgotten_history() {
    let (many, database, _) = split(3);
    write(&database, 20..22);
    let (before, txid) = (database.read(), database.read().txid());
    let expected = content(&before);
    let restarted = database.restart(Older::Forgotten, NOW).unwrap();
    let forgotten = restarted.forgotten.unwrap();
    assert_eq!((forgotten.segments, forgotten.transactions), (4, (Txid(1), txid)));
    assert!(forgotten.bytes > 4 * 16_384 && forgotten.times.0 < forgotten.times.1);
    assert_eq!((restarted.segment, restarted.pinned), (4, None));
    assert_eq!(many.list().unwrap(), [NAME]);
    assert_eq!(database.read().txid(), txid, "nothing was committed");
    assert_eq!(content(&database.read()), expected);
    assert_eq!(content(&before), expected, "a snapshot goes on reading what was removed");

    write(&database, 22..25);
    let expected = content(&database.read());
    database.close().unwrap();
    let database = open(&many);
    assert_eq!(content(&database.read()), expected);
    assert_eq!(content(&Reader::open(&many, NAME).unwrap().read()), expected);
    let text = history(&many);
    assert!(text.contains("number 22") && !text.contains("number 21"), "{text}");
    database.restart(Older::Kept, NOW).unwrap();
    drop(database);
    assert_eq!(content(&open(&many).read()), expected);
}

#[test]
fn the_state_takes_no_more_than_what_is_alive() {
    let (_, database, _) = split(1);
    let long = vec![1; 3_000_000];
    database.write(|tx| tx.write_blob(&long[..]).map(drop)).unwrap();
    let restarted = database.restart(Older::Forgotten, NOW).unwrap();
    assert!(restarted.bytes < 300_000 && restarted.forgotten.unwrap().bytes > 3_000_000);
    let blob = database.read().blob(Blob(5)).unwrap();
    assert!(blob.is_empty(), "no row leads to it");
    assert_eq!(database.write(|tx| tx.write_blob(&b"next"[..])).unwrap(), Blob(6));
}

/// What is hard to say in events: numbers that are not used again, next ids, single rows, references to
/// nothing, defaults.
fn hard_things(tx: &mut Transaction<'_>) -> Result<()> {
    let mut apply = |command| tx.apply_command(&command);
    let table = |name: &str| Command::CreateTable { name: name.to_owned() };
    let field = |table, name: &str, ty, default| Command::AddField {
        table: TableNumber(table),
        name: name.to_owned(),
        ty,
        nullable: ty != Type::Int16,
        default,
    };
    apply(table("dropped"))?;
    apply(field(0, "x", Type::Bool, None))?;
    apply(table("main"))?;
    apply(field(1, "gone", Type::Bool, None))?;
    apply(field(1, "number", Type::Int16, Some(annals::Value::Int16(-5))))?;
    let to_main = |on_delete| Type::Reference(TableNumber(1), on_delete);
    apply(field(1, "next", to_main(OnDelete::Dangle), None))?;
    apply(field(1, "held", to_main(OnDelete::Restrict), None))?;
    apply(table("once"))?;
    apply(field(2, "x", Type::Float64, None))?;
    apply(table("settings"))?;
    apply(field(3, "x", Type::String, None))?;
    let (main, once, settings) = (TableNumber(1), TableNumber(2), TableNumber(3));
    let index = |name: &str, unique| Command::CreateIndex {
        name: name.to_owned(),
        table: main,
        fields: vec![FieldNumber(1)],
        descending: Vec::new(),
        collated: Vec::new(),
        unique,
    };
    apply(index("dropped_index", false))?;
    apply(index("by_number", true))?;
    apply(Command::DropIndex { index: IndexNumber(0) })?;
    apply(Command::DropField { table: main, field: FieldNumber(0) })?;
    apply(Command::DropTable { table: TableNumber(0) })?;
    apply(Command::RenameTable { table: main, name: "kept".to_owned() })?;
    for number in 0..6i16 {
        let next = ValueRef::Reference(RowId(u64::from(number.unsigned_abs()) + 1));
        let held = if number == 5 { ValueRef::Reference(RowId(1)) } else { ValueRef::Null };
        tx.insert(main, &[number.into(), if number == 4 { next } else { ValueRef::Null }, held])?;
    }
    for id in [0, 3, 5] {
        tx.delete(main, RowId(id))?;
    }
    tx.insert_at(
        main,
        RowId(1 << 40),
        &[(-1i16).into(), ValueRef::Null, ValueRef::Reference(RowId(1))],
    )?;
    tx.delete(main, RowId(1 << 40))?;
    let held = ValueRef::Reference(RowId(1));
    tx.insert_at(main, RowId(77), &[77i16.into(), ValueRef::Null, held])?;
    let single = |table, single| Command::SetSingleRow { table, single };
    tx.insert(once, &[1.5.into()])?;
    tx.apply_command(&single(once, true))?;
    tx.apply_command(&single(once, false))?;
    tx.delete(once, RowId(0))?;
    tx.insert(once, &[2.5.into()])?;
    tx.insert(settings, &[ValueRef::String("first")])?;
    tx.delete(settings, RowId(0))?;
    tx.insert(settings, &[ValueRef::String("kept")])?;
    tx.insert(settings, &[ValueRef::String("last")])?;
    tx.delete(settings, RowId(2))?;
    tx.apply_command(&single(settings, true))?;
    tx.apply_command(&field(3, "later", Type::Int16, Some(annals::Value::Int16(9))))?;
    tx.apply_command(&Command::Custom { name: "mark".to_owned() })
}

#[test]
fn all_numbers_are_what_they_were() {
    let (_, memory) = directory();
    let database = open(&memory);
    database.write(hard_things).unwrap();
    let before = content(&database.read());
    assert!(
        before.contains("kept: next id 1099511627777") && before.contains("settings: next id 3")
    );
    database.restart(Older::Forgotten, NOW).unwrap();
    assert_eq!(content(&database.read()), before);
    drop(database);
    let database = open(&memory);
    assert_eq!(content(&database.read()), before);
    // And again, from what was replayed.
    database.restart(Older::Forgotten, NOW).unwrap();
    database.write(|tx| tx.comment("so that there is something new")).unwrap();
    database.restart(Older::Forgotten, NOW).unwrap();
    drop(database);
    let database = open(&memory);
    assert_eq!(content(&database.read()), before);
    let refused = database.write(|tx| tx.delete(TableNumber(1), RowId(1))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Reference, "enforced as before");
    let refused = database.write(|tx| {
        tx.insert(TableNumber(1), &[1i16.into(), ValueRef::Null, ValueRef::Null]).map(drop)
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unique);
    database
        .write(|tx| tx.apply_command(&Command::CreateTable { name: "new".to_owned() }))
        .unwrap();
    assert_eq!(database.read().schema().tables().last().unwrap().number, TableNumber(4));
}

#[test]
fn history_that_is_kept_beside_the_state_is_read_once() {
    let (many, database, one) = split(2);
    let restarted = database.restart(Older::NotNeeded, NOW).unwrap();
    assert_eq!((restarted.segment, restarted.is_new, restarted.forgotten), (3, true, None));
    let names: Vec<_> = (0..3).map(|n| format!("db-segment-{n:06}")).collect();
    assert_eq!(many.list().unwrap(), [vec![NAME.to_owned()], names].concat());
    assert_eq!(history(&many), history(&one), "the state isn't told, since its making was");

    write(&database, 30..31);
    let expected = content(&database.read());
    many.remove("db-segment-000000").unwrap();
    assert_eq!(content(&open_again(&many, database).read()), expected, "it isn't needed");
    let text = history(&many);
    assert!(text.contains("number 30") && !text.contains("number 1\n"), "{text}");
}

fn open_again(
    directory: &annals::storage::MemoryDirectory,
    database: annals::Database,
) -> annals::Database {
    drop(database);
    open(directory)
}

#[test]
fn a_reader_goes_over_the_state_or_begins_with_it() {
    let (many, database, _) = split(1);
    let (near, far) = (Reader::open(&many, NAME).unwrap(), Reader::open(&many, NAME).unwrap());
    write(&database, 8..9);
    database.restart(Older::NotNeeded, NOW).unwrap();
    write(&database, 9..10);
    assert_eq!(content(&near.pull().unwrap()), content(&database.read()), "over the state");
    database.restart(Older::Kept, NOW).unwrap();
    write(&database, 10..11);
    database.restart(Older::Forgotten, NOW).unwrap();
    write(&database, 11..12);
    assert_eq!(
        content(&far.pull().unwrap()),
        content(&database.read()),
        "what was between is gone"
    );
    assert_eq!(near.pull().unwrap().txid(), database.read().txid());
}

#[test]
fn a_segment_that_is_read_stays() {
    pinned().unwrap();
}

/// Forgets history while it is read; tells if what is read goes.
pub(crate) fn pinned() -> std::result::Result<(), String> {
    let (many, database, _) = split(2);
    let mut restarted = None;
    let mut sink = Sinking(|| {
        restarted.get_or_insert_with(|| database.restart(Older::Forgotten, NOW).unwrap());
    });
    annals_tools::scan_in(&annals::Options::new(), &many, NAME, &mut sink).unwrap();
    let restarted = restarted.unwrap();
    if restarted.pinned != Some(0) || restarted.forgotten.is_some() {
        return Err(format!("removed while it was read: {restarted:?}"));
    }
    assert_eq!(many.list().unwrap().len(), 4);
    assert!(database.segments().unwrap().iter().all(|facts| !facts.is_pinned));
    let (forgotten, pinned) = database.forget_before(3).unwrap();
    assert_eq!((forgotten.unwrap().segments, pinned), (3, None), "nobody reads any more");
    assert_eq!(many.list().unwrap(), [NAME]);
    Ok(())
}

/// A sink that does something at each commit.
struct Sinking<F>(F);

impl<F: FnMut()> annals::Sink for Sinking<F> {
    fn event(&mut self, _: &annals::Schema, _: &annals::event::Event<'_>) -> Result<()> {
        Ok(())
    }
    fn commit(&mut self, _: &annals::Schema, _: &annals::Committed) -> Result<()> {
        (self.0)();
        Ok(())
    }
}

#[test]
fn only_what_is_not_needed_is_forgotten() {
    let (many, database, _) = split(2);
    for before in [1, 2, 3] {
        let error = database.forget_before(before).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(database.forget_before(0).unwrap(), (None, None));
    assert_eq!(many.list().unwrap().len(), 3);
    database.restart(Older::NotNeeded, NOW).unwrap();
    write(&database, 8..10);
    database.restart(Older::Kept, NOW).unwrap();
    let facts = database.segments().unwrap();
    let numbers: Vec<_> =
        facts.iter().map(|facts| (facts.number, facts.begins_with_state)).collect();
    assert_eq!(numbers, [(0, false), (1, false), (2, false), (3, true), (4, false)]);
    assert!(facts.windows(2).all(|pair| pair[0].last_txid + 1 == pair[1].first_txid));
    assert!(facts.windows(2).all(|pair| pair[0].begun <= pair[1].begun));

    let rules = Retention { transactions: Some(2), ..Retention::default() };
    let plan = database.plan_retention(0, &rules).unwrap();
    assert_eq!(plan.forget_before, Some(3));
    let (forgotten, _) = database.forget_before(3).unwrap();
    assert_eq!(forgotten.unwrap().segments, 3);
    assert_eq!(many.list().unwrap().len(), 2);
    assert_eq!(
        database.plan_retention(0, &Retention::default()).unwrap(),
        annals::journal::Plan::default()
    );
}

#[test]
fn a_damaged_blob_keeps_history_from_being_forgotten() {
    let (many, database, _) = split(1);
    let storage = many.open("db-segment-000000", annals::storage::Access::Write).unwrap();
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    let place = bytes.len() - 20_000;
    storage.write_at(place as u64, &[bytes[place] ^ 1]).unwrap();
    let names = many.list().unwrap();
    let error = database.restart(Older::Forgotten, NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("db-segment-000000"), "{error}");
    assert_eq!(many.list().unwrap(), names);
    write(&database, 30..31);
    assert_eq!(database.read().table(TABLE).unwrap().len(), 4);
    drop(database);
    let error = try_replay(&many).unwrap_err();
    assert!(error.to_string().contains("db-segment-000000"), "{error}");
}
