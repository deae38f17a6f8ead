//! The past in SQL: states, versions, changes, origins, the log.

use std::sync::Arc;

use annals::{Command, Database, FieldNumber, Options, TableNumber, Txid, Type, ValueRef};
use annals_simulated::{SimulatedClock, SimulatedDisk};
use annals_sql::Connection;

use crate::shop::{city, open, shop, text};

/// Three cities, then a change, a deletion, and an insertion.
fn build() -> shop::Database {
    let db = shop::Database::in_memory().unwrap();
    let new = |name| city::New { name, size: None, people: Some(1), area: None, founded: None };
    let [lille, _] = db
        .write(|tx| {
            tx.comment("first")?;
            Ok([tx.insert(new("Lille"))?, tx.insert(new("Lyon"))?])
        })
        .unwrap();
    db.write(|tx| {
        tx.edit(lille)?.set_people(Some(2))?;
        tx.comment("census")?;
        Ok(())
    })
    .unwrap();
    db.write(|tx| Ok(tx.delete(city::Id::from_u64(1))?)).unwrap();
    db.write(|tx| Ok(tx.insert(new("Paris"))?)).unwrap();
    db
}

#[test]
fn states_are_read_at_a_moment() {
    let db = build();
    let mut sql = open(&db);
    let last = db.read().txid().0;
    let at = |txid: u64| format!("SELECT name, people FROM city_at({txid}) ORDER BY name");
    assert_eq!(text(&mut sql, &at(last)), "'Lille'|2\n'Paris'|1\n");
    assert_eq!(text(&mut sql, &at(last - 1)), "'Lille'|2\n");
    assert_eq!(text(&mut sql, &at(last - 3)), "'Lille'|1\n'Lyon'|1\n");
    let by_comment = "SELECT people FROM city_at('comment:first') WHERE id = 0";
    assert_eq!(text(&mut sql, by_comment), "1\n");
    let joined = format!(
        "SELECT now.name, then_.people FROM city now JOIN city_at({}) then_ ON then_.id = now.id",
        last - 3
    );
    assert_eq!(text(&mut sql, &joined), "'Lille'|1\n");
    let moving = "SELECT txid, (SELECT count(*) FROM city_at(txid)) FROM annals_log WHERE txid > 1 ORDER BY txid";
    assert_eq!(text(&mut sql, moving).lines().last().unwrap(), format!("{last}|2"));
    assert_eq!(text(&mut sql, "SELECT * FROM city_at(NULL)"), "");
    for (query, part) in [
        ("SELECT * FROM city_at", "needs a moment"),
        ("SELECT * FROM city_at('noon')", "is no moment"),
        ("SELECT * FROM city_at(999)", "no transaction 999"),
    ] {
        let said = text(&mut sql, query);
        assert!(said.starts_with("error:") && said.contains(part), "{query}: {said}");
    }
}

#[test]
fn versions_tell_what_changed() {
    let db = build();
    let mut sql = open(&db);
    let last = db.read().txid().0;
    let query = "SELECT txid, comment, kind, old_people, new_people FROM city_history(0)";
    let [first, second] = [last - 3, last - 2];
    let expected = format!("{first}|'first'|'insert'|null|1\n{second}|'census'|'update'|1|2\n");
    assert_eq!(text(&mut sql, query), expected);
    let by_column =
        "SELECT txid, comment, kind, old_people, new_people FROM city_history WHERE id = 0";
    assert_eq!(text(&mut sql, by_column), expected);
    // All rows, and a part of the transactions.
    let all = "SELECT kind, count(*) FROM city_history GROUP BY kind ORDER BY kind";
    assert_eq!(text(&mut sql, all), "'delete'|1\n'insert'|3\n'update'|1\n");
    let part =
        format!("SELECT id, kind FROM city_history WHERE txid >= {} ORDER BY txid", last - 1);
    assert_eq!(text(&mut sql, &part), "1|'delete'\n2|'insert'\n");
    let each = "SELECT h.id, h.kind FROM city c JOIN city_history(c.id) h ORDER BY c.id, h.txid";
    assert_eq!(text(&mut sql, each), "0|'insert'\n0|'update'\n2|'insert'\n");
}

#[test]
fn changes_lie_between_two_moments() {
    let db = build();
    let mut sql = open(&db);
    let last = db.read().txid().0;
    let query =
        format!("SELECT id, kind, old_people, new_people FROM city_changes({}, {last})", last - 3);
    assert_eq!(text(&mut sql, &query), "0|'update'|1|2\n1|'delete'|1|null\n2|'insert'|null|1\n");
    let backward = format!("SELECT id, kind FROM city_changes({last}, {})", last - 1);
    assert_eq!(text(&mut sql, &backward), "2|'delete'\n");
    let until_now = "SELECT count(*) FROM city_changes('comment:census')";
    assert_eq!(text(&mut sql, until_now), "2\n");
    let said = text(&mut sql, "SELECT * FROM city_changes");
    assert!(said.contains("needs a moment"), "{said}");
}

#[test]
fn blame_and_log_tell_who_and_when() {
    let db = build();
    let mut sql = open(&db);
    let last = db.read().txid().0;
    let query =
        "SELECT field, value, txid, comment FROM city_blame(0) WHERE field IN ('name', 'people')";
    let expected =
        format!("'name'|'Lille'|{}|'first'\n'people'|2|{}|'census'\n", last - 3, last - 2);
    assert_eq!(text(&mut sql, query), expected);
    assert_eq!(text(&mut sql, "SELECT count(DISTINCT id) FROM city_blame"), "2\n");
    assert_eq!(text(&mut sql, "SELECT * FROM city_blame(77)"), "");
    let newest = "SELECT txid, changes, comment FROM annals_log ORDER BY txid DESC LIMIT 3";
    let expected = format!("{last}|1|null\n{}|1|null\n{}|1|'census'\n", last - 1, last - 2);
    assert_eq!(text(&mut sql, newest), expected);
    let fields = "SELECT name, type FROM annals_schema WHERE \"table\" = 'city' AND kind = 'index'";
    assert_eq!(
        text(&mut sql, fields),
        "'city_by_name'|'name'\n'city_by_size'|'size,people'\n'city_by_founded'|'founded'\n"
    );
}

#[test]
fn the_log_is_the_same_from_both_ends() {
    let db = shop::Database::in_memory().unwrap();
    for number in 0..300 {
        db.write(|tx| tx.comment(&format!("number {number}")).map_err(Into::into)).unwrap();
    }
    let mut sql = open(&db);
    let all = |order: &str| {
        format!("SELECT txid, comment, changes FROM annals_log ORDER BY txid {order}")
    };
    let forward = text(&mut sql, &all("ASC"));
    let backward = text(&mut sql, &all("DESC"));
    let reversed: Vec<_> = backward.lines().rev().collect();
    assert_eq!(forward.lines().collect::<Vec<_>>(), reversed);
    assert_eq!(forward.lines().count() as u64, db.read().txid().0 - Txid(0).0);
    let part = "SELECT count(*), min(txid), max(txid) FROM annals_log WHERE txid BETWEEN 10 AND 19";
    assert_eq!(text(&mut sql, part), "10|10|19\n");
}

#[test]
fn a_state_as_it_was_has_what_was_dropped_since() {
    let db = Database::in_memory().unwrap();
    let (t, gone) = (TableNumber(0), TableNumber(1));
    let field = |table, name: &str, ty, default| Command::AddField {
        table,
        name: name.to_owned(),
        ty,
        nullable: false,
        default,
    };
    let number = ValueRef::Int64;
    let made = db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        tx.apply_command(&field(t, "a", Type::Int64, None))?;
        tx.apply_command(&field(t, "b", Type::String, None))?;
        tx.apply_command(&Command::CreateTable { name: "gone".to_owned() })?;
        tx.apply_command(&field(gone, "x", Type::Int64, None))?;
        tx.insert(t, &[number(1), ValueRef::String("x")])?;
        tx.insert(gone, &[number(5)]).map(drop)
    });
    made.unwrap();
    let changed = db.write(|tx| {
        let (a, name) = (FieldNumber(0), "aa".to_owned());
        tx.apply_command(&field(t, "c", Type::Int64, Some(annals::Value::Int64(7))))?;
        tx.apply_command(&Command::DropField { table: t, field: FieldNumber(1) })?;
        tx.apply_command(&Command::RenameField { table: t, field: a, name })?;
        tx.apply_command(&Command::DropTable { table: gone })
    });
    changed.unwrap();
    db.write(|tx| tx.insert(t, &[number(2), number(8)])).unwrap();
    let mut sql = Connection::open(db).unwrap();
    // The names are the present ones; `b` was dropped since, and `c` wasn't there yet.
    for (query, expected) in [
        ("SELECT id, aa, b, c FROM t_as_it_was(1)", "0|1|'x'|null\n"),
        ("SELECT id, aa, b, c FROM t_as_it_was(3) WHERE id = 1", "1|2|null|8\n"),
        ("SELECT aa, c FROM t_at(1)", "1|7\n"),
        ("SELECT x FROM gone_as_it_was(1)", "5\n"),
        ("SELECT count(*) FROM gone_as_it_was(3)", "0\n"),
        ("SELECT count(*) FROM t_as_it_was(NULL)", "0\n"),
        (
            "SELECT o.k FROM (SELECT 7 AS k UNION ALL SELECT 1) o JOIN t_as_it_was(1) p ON p.aa = o.k",
            "1\n",
        ),
        (
            "SELECT o.k FROM (SELECT 7 AS k UNION ALL SELECT 1) o JOIN t_as_it_was(1) p ON p.c = o.k",
            "",
        ),
    ] {
        assert_eq!(text(&mut sql, query), expected, "{query}");
    }
    let said = text(&mut sql, "SELECT * FROM t_as_it_was");
    assert!(said.contains("t_as_it_was needs a moment: t_as_it_was(17)"), "{said}");
}

#[test]
fn a_join_reads_a_difference_once() {
    let disk = SimulatedDisk::new(1);
    let clock = Arc::new(SimulatedClock::new(1));
    let options = Options::new().background(false);
    let db = options.open_in(Arc::new(disk.clone()), "db", clock).unwrap();
    let (table, field) = (TableNumber(0), FieldNumber(0));
    let (name, ty, nullable, default) = ("x".to_owned(), Type::Int64, false, None);
    db.write(|tx| {
        tx.apply_command(&Command::CreateTable { name: "t".to_owned() })?;
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
        (0..300).try_for_each(|x| tx.insert(table, &[ValueRef::Int64(x)]).map(drop))
    })
    .unwrap();
    db.write(|tx| {
        (0..300).step_by(3).try_for_each(|id| {
            tx.update(table, annals::RowId(id), field, ValueRef::Int64(-1 - id.cast_signed()))
        })
    })
    .unwrap();
    let mut sql = Connection::open(db).unwrap();
    for query in [
        "SELECT count(*), count(c.id) FROM t LEFT JOIN t_changes(1, 2) c ON c.id = t.id WHERE t.id < N",
        "SELECT count(*), count(c.id) FROM t LEFT JOIN t_changes(1) c ON c.new_x = t.x WHERE t.id < N",
        "SELECT count(*), sum((SELECT count(*) FROM t_changes(1, 2) c WHERE c.id = t.id)) FROM t WHERE t.id < N",
        "SELECT count(*), count(b.id) FROM t LEFT JOIN t_changes(1, 2) a ON a.id = t.id \
         LEFT JOIN t_changes(2, 1) b ON b.id = a.id AND b.new_x = a.old_x WHERE t.id < N",
    ] {
        let mut reads = |rows: u64| {
            let before = disk.reads();
            let found = text(&mut sql, &query.replace("< N", &format!("< {rows}")));
            assert_eq!(found, format!("{rows}|{}\n", rows / 3), "{query}");
            disk.reads() - before
        };
        let few = reads(6);
        assert!(few > 0, "{query}");
        assert!(reads(300) <= few, "{query}: it was read again");
    }
}
