//! Scripts with savepoints, which SQLite runs too: both must hold the same.

use std::fmt::Write;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::program::succeed;
use crate::sql::rows;

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A script for the shell, of statements that SQLite has run.
struct Both {
    sqlite: Connection,
    script: String,
    random: Random,
    /// The names of the savepoints that are set.
    names: Vec<&'static str>,
}

impl Both {
    /// Runs a statement in SQLite; adds it to the script unless SQLite refuses it.
    fn run(&mut self, sql: &str, line: &str) -> bool {
        let done = self.sqlite.execute_batch(sql).is_ok();
        if done {
            writeln!(self.script, "{line}").unwrap();
        }
        done
    }

    /// Changes a row; a key that another row has is refused.
    fn change(&mut self) {
        let (id, key) = (self.random.below(30), self.random.below(60));
        let has = format!("SELECT 1 FROM t WHERE id = {id}");
        let has = !rows(&self.sqlite, &has).is_empty();
        match self.random.below(4) {
            0 if has => {
                self.run(&format!("DELETE FROM t WHERE id = {id}"), &format!("delete_from t {id}"));
            }
            1 if has => {
                let sql = format!("UPDATE t SET key = {key} WHERE id = {id}");
                self.run(&sql, &format!("update t {id} key {key}"));
            }
            2 if has => {
                let sql = format!("UPDATE t SET name = 'n{key}' WHERE id = {id}");
                self.run(&sql, &format!("update t {id} name \"n{key}\""));
            }
            _ => {
                let sql = format!("INSERT INTO t VALUES ({id}, {key}, 'new')");
                self.run(&sql, &format!("insert_at t {id} {key} \"new\""));
            }
        }
    }

    fn step(&mut self) {
        let name = ["a", "b", "c"][usize::try_from(self.random.below(3)).unwrap()];
        let place = self.names.iter().rposition(|own| *own == name);
        match (self.random.below(12), place) {
            (0 | 1, _) => {
                assert!(self.run(&format!("SAVEPOINT {name}"), &format!("savepoint {name}")));
                self.names.push(name);
            }
            (2, Some(place)) => {
                let sql = format!("ROLLBACK TO {name}");
                assert!(self.run(&sql, &format!("rollback_to {name}")));
                self.names.truncate(place + 1);
            }
            (3, Some(place)) => {
                assert!(self.run(&format!("RELEASE {name}"), &format!("release {name}")));
                self.names.truncate(place);
            }
            _ => self.change(),
        }
    }
}

#[test]
fn sqlite_agrees_about_savepoints() {
    for seed in 1..20u64 {
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Connection::open_in_memory().unwrap();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut both = Both { sqlite, script: String::new(), random, names: Vec::new() };
        let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, key INTEGER UNIQUE, name TEXT)";
        let same = "create_table t\nadd_field t key int64\nadd_field t name string\n\
                    create_unique_index by_key t key\ncommit";
        assert!(both.run(table, same));
        for _ in 0..10 {
            // The end of the transaction is that of its savepoints.
            both.sqlite.execute_batch("BEGIN").unwrap();
            both.names.clear();
            for _ in 0..both.random.below(40) {
                both.step();
            }
            let ends = if both.random.below(4) == 0 { "rollback" } else { "commit" };
            assert!(both.run(ends, ends));
        }
        succeed(folder.path(), &["shell", "db"], &both.script);
        // All that the journal alone gives.
        let dump = succeed(folder.path(), &["dump", "db"], "");
        let found: String = dump
            .lines()
            .filter(|line| line.starts_with("insert_at"))
            .fold(String::new(), |all, line| all + line + "\n");
        let mut expected = String::new();
        for row in rows(&both.sqlite, "SELECT id, key, name FROM t ORDER BY id") {
            let [Value::Integer(id), Value::Integer(key), Value::Text(name)] = &row[..] else {
                panic!("{row:?}");
            };
            writeln!(expected, "insert_at t {id} {key} \"{name}\"").unwrap();
        }
        assert_eq!(found, expected, "after\n{}", both.script);
    }
}
