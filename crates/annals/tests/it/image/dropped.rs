//! The space of tables that are dropped while what they had lies ahead of any root.

use annals::{BackfillMode, Command, TableNumber, Transaction, Type, ValueRef};

use super::larger::{LITTLE, ROWS, define, digest, insert, opens_as, options};

/// What was spilled of a table that is dropped in the same transaction, or before its root, is used again.
#[test]
fn the_space_of_what_was_spilled_and_dropped_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    // The history index and key frames keep what was dropped.
    let db = options(LITTLE).history_index(false).key_frames(0).open(&path).unwrap();
    db.write(define).unwrap();
    db.write(|tx| insert(tx, 0..ROWS)).unwrap();
    let expected = digest(&db.read());
    let make = |tx: &mut Transaction<'_>, table: TableNumber| {
        tx.apply_command(&Command::CreateTable { name: format!("t{}", table.0) })?;
        let (name, ty) = ("x".to_owned(), Type::Int64);
        let field = Command::AddField { table, name, ty, nullable: false, default: None };
        tx.apply_command(&field)?;
        (0..400_000).try_for_each(|x| tx.insert(table, &[ValueRef::Int64(x + 1)]).map(drop))
    };
    let mut first = 0;
    for round in 0..8_u32 {
        let (a, b) = (TableNumber(2 * round + 1), TableNumber(2 * round + 2));
        db.write(|tx| {
            make(tx, a)?;
            tx.apply_command(&Command::DropTable { table: a })?;
            make(tx, b)
        })
        .unwrap();
        let mut lost = db.begin().unwrap();
        lost.apply_command(&Command::DropTable { table: b }).unwrap();
        insert(&mut lost, ROWS..2 * ROWS).unwrap();
        lost.rollback().unwrap();
        if round % 2 == 0 {
            db.backfill(BackfillMode::Full).unwrap();
        }
        db.write(|tx| tx.apply_command(&Command::DropTable { table: b })).unwrap();
        let bytes = db.backfill(BackfillMode::Full).unwrap().image_bytes;
        first = if round == 1 { bytes } else { first };
        assert!(round == 0 || bytes <= first + first / 4, "round {round}: {bytes}, {first} first");
        assert_eq!(digest(&db.read()), expected);
    }
    db.close().unwrap();
    opens_as(&path, expected);
}
