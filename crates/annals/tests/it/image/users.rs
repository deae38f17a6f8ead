//! What users do with an image: watch a backfill, have it checked and compared, read it by its document.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::reports::BackfillOutcome;
use annals::storage::{Clock as _, SystemClock};
use annals::{
    BackfillMode, Command, Database, ErrorKind, FieldNumber, Options, RowId, TableNumber, Type,
    Value, ValueRef,
};

use super::document::{self, Reader};
use super::{TABLE, create, image_of, insert};

#[test]
fn a_backfill_is_watched_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..5000);
    let mut told = Vec::new();
    let done = db.backfill_watched(BackfillMode::Full, &mut |progress| {
        told.push(progress);
        ControlFlow::Continue(())
    });
    let done = done.unwrap();
    assert_eq!((told[0].done, told[0].bytes), (0, 0));
    let last = told.last().unwrap();
    assert_eq!((last.done, last.total, last.bytes), (done.pages, done.pages, done.bytes));
    assert!(told.is_sorted_by_key(|progress| progress.done));

    insert(&db, 5000..6000);
    let before = std::fs::read(image_of(&path)).unwrap();
    let mut calls = 0;
    for stop_at in 1..=2 {
        calls = 0;
        let stopped = db.backfill_watched(BackfillMode::Full, &mut |_| {
            calls += 1;
            if calls == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
        let now = std::fs::read(image_of(&path)).unwrap();
        assert_eq!(now[..12288], before[..12288], "both roots are as they were");
    }
    assert_eq!(calls, 2);
    let done = db.backfill(BackfillMode::Full).unwrap();
    assert_eq!((done.outcome, done.txid), (BackfillOutcome::Advanced, db.read().txid()));
    drop(db);
    assert_eq!(problem(&path), None);
}

#[test]
fn what_watches_a_backfill_cannot_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = create(&folder.path().join("a.annals"));
    insert(&db, 0..100);
    let mut refused = 0;
    let done = db.backfill_watched(BackfillMode::Full, &mut |_| {
        let restarted = db.restart(annals::reports::Older::Kept, Duration::ZERO).map(drop);
        let modes = BackfillMode::ALL.map(|mode| db.backfill(mode).map(drop));
        for nested in modes.into_iter().chain([restarted, db.live_bytes().map(drop)]) {
            let error = nested.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("being told how far"), "{error}");
            refused += 1;
        }
        // Writing is nobody's business.
        insert(&db, 100..101);
        ControlFlow::Continue(())
    });
    assert_eq!((done.unwrap().outcome, refused), (BackfillOutcome::Advanced, 12));
    assert_eq!(db.backfill(BackfillMode::Full).unwrap().outcome, BackfillOutcome::Advanced);
}

/// A transaction that was open while a backfill ended is in the way of the new root only until it ends.
#[test]
fn a_database_that_rests_reads_no_older_root() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..100);
    db.backfill(BackfillMode::Full).unwrap();
    let readers =
        || annals_tools::examine(&Options::new(), &path).unwrap().inspection.image.unwrap().readers;
    let endings: [fn(annals::Transaction<'_>); 4] = [
        |tx| tx.rollback().unwrap(),
        |tx| {
            tx.commit().unwrap();
        },
        |mut tx| {
            tx.comment("and nothing else").unwrap();
            tx.commit().unwrap();
        },
        |mut tx| {
            tx.delete(TABLE, RowId(7)).unwrap();
            tx.commit().unwrap();
        },
    ];
    for (number, end) in (200..).zip(endings) {
        insert(&db, number..number + 1);
        let tx = db.begin().unwrap();
        let passive = || db.backfill(BackfillMode::Passive).unwrap().outcome;
        let outcome = std::thread::scope(|scope| scope.spawn(passive).join().unwrap());
        assert_eq!(outcome, BackfillOutcome::Advanced);
        if cfg!(target_os = "linux") {
            assert_eq!(readers().len(), 1, "the published view lies over the root before");
        }
        end(tx);
        assert_eq!(readers(), [], "ending {}", number - 200);
    }
    assert_eq!(super::dump(&db).len(), 206);
    db.close().unwrap();
    assert_eq!(problem(&path), None);
}

/// Returns what a check of the image says, and sees that the comparison agrees.
fn problem(path: &Path) -> Option<String> {
    let options = Options::new();
    let check = annals_tools::check_image(&options, path).unwrap().unwrap();
    let replayed = annals_tools::examine(&options, path).unwrap().snapshot;
    let compared = annals_tools::compare_image(&options, path, &replayed);
    match &check.problem {
        None => {
            let compared = compared.unwrap().unwrap();
            assert_eq!((compared.txid, compared.difference), (replayed.txid(), None));
            assert_eq!((check.txid, check.torn), (compared.image_txid, [false; 2]));
        }
        Some(problem) => assert!(problem.contains("-image: "), "{problem}"),
    }
    check.problem
}

#[test]
fn an_image_is_checked_and_compared_with_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    insert(&db, 0..3000);
    assert_eq!(annals_tools::check_image(&Options::new(), &path).unwrap(), None);
    let now = db.read();
    assert_eq!(annals_tools::compare_image(&Options::new(), &path, &now).unwrap(), None);
    db.backfill(BackfillMode::Full).unwrap();
    insert(&db, 3000..3005);
    assert_eq!(problem(&path), None, "the journal goes on behind it");
    // A state that the journal has gone on from is brought to the end that both have.
    let compared = annals_tools::compare_image(&Options::new(), &path, &now).unwrap().unwrap();
    assert_eq!((compared.txid.0, compared.difference), (3, None));
    drop(db);

    // A state that the journal doesn't lead to.
    let other = folder.path().join("other.annals");
    let db = create(&other);
    db.write(|tx| tx.insert(TableNumber(0), &[ValueRef::String("x"), ValueRef::Int64(0)])).unwrap();
    db.write(|tx| tx.comment("so that it has as many transactions")).unwrap();
    let compared =
        annals_tools::compare_image(&Options::new(), &path, &db.read()).unwrap().unwrap();
    let difference = compared.difference.unwrap();
    assert_eq!(difference, "the number of rows of table `t`: 3005 and 1");

    // The image of another journal.
    db.backfill(BackfillMode::Full).unwrap();
    let sound = std::fs::read(image_of(&path)).unwrap();
    std::fs::copy(image_of(&other), image_of(&path)).unwrap();
    assert!(problem(&path).unwrap().ends_with("it belongs to another journal"));
    std::fs::write(image_of(&path), &sound).unwrap();
    assert_eq!(problem(&path), None);
}

#[test]
fn a_state_of_any_segment_is_brought_to_the_end_before_it_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = create(&path);
    let mut states = Vec::new();
    for number in 0..12 {
        insert(&db, number..number + 1);
        states.push(annals_tools::examine(&Options::new(), &path).unwrap().snapshot);
        if number % 3 == 2 {
            db.backfill(BackfillMode::Restart).unwrap();
        }
        for state in &states {
            let compared = annals_tools::compare_image(&Options::new(), &path, state).unwrap();
            let differs = compared.map(|compared| (compared.txid, compared.difference));
            let expected = (number > 1).then(|| (db.read().txid(), None));
            assert_eq!(differs, expected, "{} of {number}", state.txid());
        }
    }
}

#[test]
fn an_image_of_another_past_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    drop(create(&a));
    std::fs::copy(&a, &b).unwrap();
    for (path, name, count) in [(&a, "a", 1), (&b, "the other", 3)] {
        let db = Database::open(path).unwrap();
        for number in 0..count {
            let row = [ValueRef::String(name), ValueRef::Int64(number)];
            db.write(|tx| tx.insert(TableNumber(0), &row)).unwrap();
        }
        db.backfill(BackfillMode::Full).unwrap();
    }
    std::fs::copy(image_of(&a), image_of(&b)).unwrap();
    let told = problem(&b).unwrap();
    assert!(told.contains("stands for transaction 2 at position"), "{told}");
    let db = Database::open(&b).unwrap();
    assert_eq!(db.read().table(TableNumber(0)).unwrap().len(), 3);
    let [note] = &db.recovered().findings[..] else { panic!("{:?}", db.recovered().findings) };
    assert!(
        note.contains("stands for transaction 2") && note.contains("nothing is lost"),
        "{note}"
    );
}

const SCHEMA: &str = "\
create_table gone
add_field gone x int8
create_index gone_by_x gone x
create_table every
add_field every a bool null
add_field every b bool
add_field every c int8
add_field every d uint16 null
add_field every e float32
add_field every f int64 null
add_field every g timestamp
add_field every h string
add_field every i bytes null
add_field every j blob null
add_field every k references every
create_index by_h every h
create_unique_index by_k_h every k,f
drop_index gone_by_x
drop_table gone
create_table queue
add_field queue n uint32
add_field queue dropped string
drop_field queue dropped
create_index by_n queue n
create_table empty
add_field empty s string";
const EVERY: TableNumber = TableNumber(1);
const QUEUE: TableNumber = TableNumber(2);

/// Returns a text of any length that a column or a key treats differently.
fn text(number: u64) -> String {
    let len = [3, 12, 13, 100, 900, 1100, 4000, 4200, 20_000][usize::try_from(number % 9).unwrap()];
    format!("{:06}{}", number * 7919 % 100_000, "x".repeat(len))
}

/// Makes a database of all forms that the document speaks of, and an image of it in two steps.
fn fill(path: &Path) -> annals::Result<Database> {
    let db = Options::new().background(false).open(path)?;
    let blob = db.write(|tx| {
        for command in annals_schema::parse(SCHEMA).unwrap().schema.commands() {
            tx.apply_command(command)?;
        }
        tx.write_blob(&[7; 150_000][..])
    })?;
    for step in 0..2 {
        db.write(|tx| {
            for number in step * 1500..step * 1500 + 1500 {
                let (small, text) = (i8::try_from(number % 100).unwrap(), text(number));
                let (bytes, even) = (text.as_bytes(), number % 2 == 0);
                let or_null = |value| if even { value } else { ValueRef::Null };
                let mut row = vec![
                    or_null(ValueRef::Bool(number % 3 == 0)),
                    ValueRef::Bool(number % 5 == 0),
                    ValueRef::Int8(-small),
                    or_null(ValueRef::UInt16(40_000 + u16::from(small.unsigned_abs()))),
                    ValueRef::Float32(f32::from(small) / 7.0),
                    or_null(ValueRef::Int64(-(number.cast_signed()))),
                    ValueRef::Timestamp(number.cast_signed() << 30),
                    ValueRef::String(&text),
                    or_null(ValueRef::Bytes(bytes.get(..bytes.len() / 2).unwrap())),
                    if number == 5 { ValueRef::Blob(blob) } else { ValueRef::Null },
                    ValueRef::Reference(RowId(number / 2)),
                ];
                row.extend((0..step).map(|_| ValueRef::String("not the default, but long too")));
                tx.insert(EVERY, &row)?;
                tx.insert(QUEUE, &[ValueRef::UInt32(u32::from(small.unsigned_abs()))])?;
            }
            for id in (step * 1500..step * 1500 + 1300).filter(|id| id % 1000 > 3) {
                tx.delete(QUEUE, RowId(id))?;
            }
            for id in (step * 700..2 * step * 700).step_by(3) {
                tx.update(EVERY, RowId(id), FieldNumber(7), ValueRef::String(&text(id + 1)))?;
                tx.delete(EVERY, RowId(id + 1))?;
            }
            (1..=2 * step)
                .try_for_each(|far| tx.insert_at(QUEUE, RowId(far << 40), &[ValueRef::UInt32(1)]))
        })?;
        let default = Some(Value::String(format!("a default that is long {step}")));
        let (name, table) = (format!("late{step}"), EVERY);
        let field = Command::AddField { table, name, ty: Type::String, nullable: false, default };
        db.write(|tx| tx.apply_command(&field))?;
        let done = db.backfill(BackfillMode::Full)?;
        assert_eq!(done.outcome, BackfillOutcome::Advanced);
    }
    Ok(db)
}

/// Returns the bytes of a value as a column has them.
fn bytes_of(value: ValueRef<'_>) -> Option<Vec<u8>> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Bool(value) => vec![u8::from(value)],
        ValueRef::Int8(value) => value.to_le_bytes().to_vec(),
        ValueRef::UInt16(value) => value.to_le_bytes().to_vec(),
        ValueRef::UInt32(value) => value.to_le_bytes().to_vec(),
        ValueRef::Float32(value) => value.to_le_bytes().to_vec(),
        ValueRef::Int64(value) | ValueRef::Timestamp(value) => value.to_le_bytes().to_vec(),
        ValueRef::String(value) => value.as_bytes().to_vec(),
        ValueRef::Bytes(value) => value.to_vec(),
        ValueRef::Blob(blob) => blob.0.to_le_bytes().to_vec(),
        ValueRef::Reference(id) => id.0.to_le_bytes().to_vec(),
        other => panic!("no field has {other:?}"),
    })
}

/// Verifies that a history index has a place for each row, and that each place is that of a frame or of a block.
fn has_places(history: &[[u64; 4]], rows: &[(u64, u64)], journal: &[u8]) {
    for (table, id) in rows {
        let is_it = |&[key, first, count, _]: &[u64; 4]| {
            key == table + 8 && first <= *id && *id < first + count
        };
        assert!(history.iter().any(is_it), "row {id} of table {table}");
    }
    let mut blocks = 0;
    for [_, _, _, place] in history.iter().filter(|entry| entry[2] > 0) {
        if place % 2 == 1 {
            assert!(history.iter().any(|[key, row, ..]| (key, row) == (&3, place)));
            blocks += 1;
        } else {
            let position = usize::try_from(place / 2 * 8).unwrap();
            assert_eq!(journal[position..][..4], [0xF5, b'A', b'N', b'F']);
        }
    }
    assert!(blocks > 0);
}

#[test]
fn an_image_can_be_read_by_what_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let db = fill(&path).unwrap();
    let now = db.read();
    let file = std::fs::read(image_of(&path)).unwrap();
    let mut reader = Reader::new(&file);
    assert!(reader.begin() > 1_600_000_000_000_000);
    let schema = now.schema();
    let (tables, indexes) = document::numbers(schema);
    let mut there = Vec::new();
    for number in (0..tables).map(TableNumber) {
        let table = schema.table(number);
        assert_eq!(reader.is_there(), table.is_some());
        let Some(table) = table else { continue };
        let (next_id, rows) = reader.table(table);
        let view = now.table(number).unwrap();
        assert_eq!((next_id, rows.len() as u64), (view.next_id(), view.len()), "{}", table.name);
        for ((id, values), row) in rows.iter().zip(view.rows()) {
            let row = row.unwrap();
            assert_eq!(*id, row.id().0);
            there.push((u64::from(number.0), *id));
            for (value, field) in values.iter().zip(&table.fields) {
                assert_eq!(value, &bytes_of(row.value(field.number)), "{} of {id}", field.name);
            }
        }
    }
    for number in (0..indexes).map(annals::IndexNumber) {
        assert_eq!(reader.is_there(), schema.index(number).is_some());
        let Ok(index) = now.index(number) else { continue };
        let ids: Vec<_> = index.rows().map(|row| row.unwrap().id().0).collect();
        assert!(reader.index() == ids, "index {number:?}");
    }
    let (last, pieces) = reader.blobs();
    let history = reader.history();
    reader.end();
    assert!(reader.packed.iter().eq(&["cells", "nodes"]));
    let journal = std::fs::read(&path).unwrap();
    has_places(&history, &there, &journal);
    assert_eq!(last, 1);
    let mut end = 0;
    for [blob, offset, position, len] in pieces {
        assert_eq!((blob, offset), (1, end));
        end += len;
        let position = usize::try_from(position).unwrap();
        let bytes = &journal[position..position + usize::try_from(len).unwrap()];
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
    assert_eq!(end, 150_000);
    drop(db);
    assert_eq!(problem(&path), None);
}

/// A backfill that ends while a commit is being published isn't forgotten: the next ones continue from it.
#[test]
fn backfills_go_on_while_others_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = &create(&folder.path().join("a.annals"));
    insert(db, 0..10);
    db.backfill(BackfillMode::Full).unwrap();
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let mut tx = db.begin().unwrap();
                tx.set_level(annals::Level::Soft);
                tx.update(TABLE, RowId(3), FieldNumber(1), ValueRef::Int64(number)).unwrap();
                let _ = tx.commit().unwrap();
            }
        });
        let begun = SystemClock.elapsed();
        let mut advanced = 0;
        while advanced < 200 && SystemClock.elapsed() - begun < Duration::from_secs(5) {
            let outcome = db.backfill(BackfillMode::Passive).unwrap().outcome;
            advanced += u32::from(outcome == BackfillOutcome::Advanced);
        }
        let last = db.backfill(BackfillMode::Full).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_ne!(last.outcome, BackfillOutcome::Postponed);
    });
}

/// The space of a table that was dropped is used again, without opening the database again.
#[test]
fn the_space_of_what_was_dropped_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    drop(create(&path));
    let db = Options::new().key_frames(0).open(&path).unwrap();
    let mut first = 0;
    for round in 0..6 {
        let table = TableNumber(round + 1);
        db.write(|tx| {
            tx.apply_command(&Command::CreateTable { name: format!("t{round}") })?;
            let (name, ty) = ("x".to_owned(), Type::Int64);
            let field = Command::AddField { table, name, ty, nullable: false, default: None };
            tx.apply_command(&field)?;
            // Numbers that share no bits.
            let number = |x: i64| ValueRef::Int64((x + 1).wrapping_mul(0x5851_F42D_4C95_7F2D));
            (0..100_000).try_for_each(|x| tx.insert(table, &[number(x)]).map(drop))
        })
        .unwrap();
        let bytes = db.backfill(BackfillMode::Full).unwrap().image_bytes;
        first = if round == 0 { bytes } else { first };
        assert!(bytes <= first * 3 / 2, "round {round}: {bytes} bytes after {first}");
        db.write(|tx| tx.apply_command(&Command::DropTable { table })).unwrap();
        for x in 0..3 {
            insert(&db, x..x + 1);
            db.backfill(BackfillMode::Full).unwrap();
        }
    }
}
