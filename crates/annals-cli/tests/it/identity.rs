//! What `log` and `dump` print makes the same file again, for random histories.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::program::succeed;

#[test]
fn log_and_dump_make_the_same_file_again() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 0..if full { 2000 } else { 60 } {
        let script = Generator::new(seed).script();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script"), &script).unwrap();
        // A panic that passes through leaves the files there, to look at.
        let dir = dir.keep();
        println!("seed {seed} in {}", dir.display());
        check(&dir, &script);
        std::fs::remove_dir_all(dir).unwrap();
    }
}

fn check(dir: &Path, script: &str) {
    let told = succeed(dir, &["shell", "first.annals"], script);
    let log = succeed(dir, &["log", "first.annals"], "");
    let dump = succeed(dir, &["dump", "first.annals"], "");
    let json = succeed(dir, &["dump", "first.annals", "--format", "json"], "");
    let lines = succeed(dir, &["log", "first.annals", "--format", "json"], "");

    let told_again = succeed(dir, &["shell", "second.annals"], &log);
    assert_eq!(succeed(dir, &["log", "second.annals"], ""), log);
    assert_eq!(succeed(dir, &["dump", "second.annals"], ""), dump);
    assert_eq!(succeed(dir, &["dump", "second.annals", "--format", "json"], ""), json);
    // A commit of nothing is told, but is no part of the history.
    let mut told: Vec<_> = told.lines().map(without_position).collect();
    told.dedup_by_key(|(txid, _)| txid.clone());
    told.retain(|(txid, _)| txid != "txid=0");
    assert_eq!(told_again.lines().map(without_position).collect::<Vec<_>>(), told);

    succeed(dir, &["shell", "third.annals"], &dump);
    assert_eq!(succeed(dir, &["dump", "third.annals"], ""), dump);
    assert_eq!(succeed(dir, &["dump", "third.annals", "--format", "json"], ""), json);

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    crate::sql::holds_the_same(dir, "first.annals", &dump);
    let _: serde_json::Value = serde_json::from_str(&json).unwrap();
    let events = lines.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["events"].as_array().unwrap().len()
    });
    let commits = lines.lines().count();
    assert_eq!(events.sum::<usize>() + commits, log.lines().count());
    for file in ["first.annals", "second.annals", "third.annals"] {
        assert!(succeed(dir, &["check", file], "").starts_with("ok: "), "{file}");
    }
}

/// Gives txid and level of a line that tells of a commit.
fn without_position(line: &str) -> (String, String) {
    let words: Vec<&str> = line.split(' ').collect();
    let ["committed", txid, position, level] = words[..] else { panic!("{line:?}") };
    assert!(position.starts_with("position="), "{line:?}");
    (txid.to_owned(), level.to_owned())
}

const TYPES: [&str; 14] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "string",
    "bytes",
    "timestamp",
];

#[derive(Clone)]
struct Field {
    ty: String,
    nullable: bool,
    /// Whether a unique index is on it: then each value is written once.
    unique: bool,
}

#[derive(Clone, Default)]
struct Table {
    fields: Vec<Field>,
    rows: BTreeSet<u64>,
    next_id: u64,
}

/// Writes scripts that are right: it knows which rows are there.
struct Generator {
    state: u64,
    tables: Vec<Table>,
    committed: Vec<Table>,
    indexes: u64,
    committed_indexes: u64,
    begun: bool,
    /// For values that must not be there twice.
    counter: u64,
    script: String,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self {
            state: seed,
            tables: Vec::new(),
            committed: Vec::new(),
            indexes: 0,
            committed_indexes: 0,
            begun: false,
            counter: 0,
            script: String::new(),
        }
    }

    /// The next of a sequence of random numbers (splitmix64).
    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn script(mut self) -> String {
        for _ in 0..self.random(120) + 5 {
            self.statement();
        }
        self.script
    }

    fn line(&mut self, text: &str) {
        self.script.push_str(text);
        self.script.push('\n');
    }

    fn statement(&mut self) {
        match self.random(40) {
            0..=1 => {
                self.line(&format!("create_table t{}", self.tables.len()));
                self.tables.push(Table::default());
            }
            2..=6 => self.add_field(),
            7 => self.create_index(),
            8..=13 => self.insert(),
            14..=17 => self.insert_at(),
            18..=21 => self.insert_into(),
            22..=28 => self.update(),
            29..=31 => self.delete(),
            32 => {
                let text = self.string();
                self.line(&format!("comment {text}"));
            }
            33 => {
                let seconds = self.random(1 << 40).cast_signed() - (1 << 39);
                self.line(&format!("timestamp {seconds}"));
            }
            34 if !self.begun => {
                self.line("begin");
                self.begun = true;
            }
            35..=38 => self.commit(),
            39 => {
                self.line("rollback");
                self.begun = false;
                self.tables.clone_from(&self.committed);
                self.indexes = self.committed_indexes;
            }
            _ => self.line("  # nothing // at all"),
        }
    }

    fn commit(&mut self) {
        let mut line = "commit".to_owned();
        line += ["", " soft", " checksummed"][usize::try_from(self.random(3)).unwrap()];
        if self.random(2) == 0 {
            let time = self.timestamp();
            write!(line, " at {time}").unwrap();
        }
        self.line(&line);
        self.begun = false;
        self.committed.clone_from(&self.tables);
        self.committed_indexes = self.indexes;
    }

    /// Picks a table.
    fn table(&mut self) -> Option<usize> {
        let count = self.tables.len() as u64;
        (count > 0).then(|| usize::try_from(self.random(count)).unwrap())
    }

    /// Picks a row that is there.
    fn row(&mut self, table: usize) -> Option<u64> {
        let count = self.tables[table].rows.len() as u64;
        let place = (count > 0).then(|| self.random(count))?;
        self.tables[table].rows.iter().nth(usize::try_from(place).unwrap()).copied()
    }

    /// Picks an id that no row has: near, far, or the next one.
    fn free_id(&mut self, table: usize) -> u64 {
        let id = match self.random(12) {
            0 => self.random(1 << 62),
            1..=4 => self.tables[table].next_id,
            _ => self.random(40),
        };
        if self.tables[table].rows.contains(&id) { self.tables[table].next_id } else { id }
    }

    fn take_id(&mut self, table: usize, id: u64) {
        let table = &mut self.tables[table];
        assert!(table.rows.insert(id));
        table.next_id = table.next_id.max(id + 1);
    }

    fn add_field(&mut self) {
        let Some(table) = self.table() else { return };
        let number = self.tables[table].fields.len();
        let mut ty = TYPES[usize::try_from(self.random(TYPES.len() as u64)).unwrap()].to_owned();
        if self.random(5) == 0 {
            let target = self.table().unwrap();
            ty = format!("references t{target}");
        }
        let nullable = ty.starts_with("ref") || self.random(3) == 0;
        let field = Field { ty: ty.clone(), nullable, unique: false };
        let mut line = format!("add_field t{table} f{number} {ty}");
        if nullable && !ty.starts_with("ref") {
            line += " null";
        }
        if self.random(3) == 0 {
            let value = self.value(&field);
            write!(line, " default {value}").unwrap();
        }
        self.line(&line);
        self.tables[table].fields.push(field);
    }

    /// Makes an index, which is unique where that can't go wrong: on a new number that may be null.
    fn create_index(&mut self) {
        let Some(table) = self.table() else { return };
        let fields = self.tables[table].fields.len();
        let name = format!("i{}", self.indexes);
        self.indexes += 1;
        if fields == 0 || self.random(2) == 0 {
            self.line(&format!("add_field t{table} f{fields} uint64 null"));
            self.line(&format!("create_unique_index {name} t{table} f{fields}"));
            let field = Field { ty: "uint64".to_owned(), nullable: true, unique: true };
            self.tables[table].fields.push(field);
        } else {
            let first = usize::try_from(self.random(fields as u64)).unwrap();
            let more = if first > 0 { ",f0" } else { "" };
            self.line(&format!("create_index {name} t{table} f{first}{more}"));
        }
    }

    fn values(&mut self, table: usize) -> String {
        let fields = self.tables[table].fields.clone();
        fields.iter().map(|field| format!(" {}", self.value(field))).collect()
    }

    fn insert(&mut self) {
        let Some(table) = self.table() else { return };
        let values = self.values(table);
        self.line(&format!("insert t{table}{values}"));
        self.take_id(table, self.tables[table].next_id);
    }

    fn insert_at(&mut self) {
        let Some(table) = self.table() else { return };
        let (id, values) = (self.free_id(table), self.values(table));
        self.line(&format!("insert_at t{table} {id}{values}"));
        self.take_id(table, id);
    }

    fn insert_into(&mut self) {
        let Some(table) = self.table() else { return };
        let id = self.free_id(table);
        self.line(&format!("insert_into t{table} {id}"));
        self.take_id(table, id);
    }

    fn update(&mut self) {
        let Some(table) = self.table() else { return };
        let (Some(id), count) = (self.row(table), self.tables[table].fields.len() as u64) else {
            return;
        };
        if count > 0 {
            let number = usize::try_from(self.random(count)).unwrap();
            let field = self.tables[table].fields[number].clone();
            let value = self.value(&field);
            self.line(&format!("update t{table} {id} f{number} {value}"));
        }
    }

    fn delete(&mut self) {
        let Some(table) = self.table() else { return };
        let Some(id) = self.row(table) else { return };
        self.line(&format!("delete_from t{table} {id}"));
        self.tables[table].rows.remove(&id);
    }

    fn value(&mut self, field: &Field) -> String {
        if field.nullable && self.random(4) == 0 {
            return "null".to_owned();
        }
        if field.unique {
            self.counter += 1;
            return self.counter.to_string();
        }
        let pick = usize::try_from(self.random(4)).unwrap();
        match field.ty.as_str() {
            "bool" => ["true", "false", "1", "0"][pick].to_owned(),
            "int8" => ["-128", "127", "0", "5"][pick].to_owned(),
            "int16" => ["-32768", "32767", "0", "-7"][pick].to_owned(),
            "int32" => ["-2147483648", "2147483647", "0", "123456"][pick].to_owned(),
            "int64" => ["-9223372036854775808", "9223372036854775807", "0", "-1"][pick].to_owned(),
            "uint8" => ["255", "0", "1", "128"][pick].to_owned(),
            "uint16" => ["65535", "0", "1", "256"][pick].to_owned(),
            "uint32" => ["4294967295", "0", "1", "65536"][pick].to_owned(),
            "uint64" => ["18446744073709551615", "0", "1", "4294967296"][pick].to_owned(),
            "float32" | "float64" => self.float(),
            "string" => self.string(),
            "bytes" => ["0x", "0x00", "0xff00Fe", "0x22225c0a"][pick].to_owned(),
            "timestamp" => self.timestamp(),
            _ => ["-1", "0", "3", "9223372036854775806"][pick].to_owned(),
        }
    }

    fn float(&mut self) -> String {
        let special = ["nan", "inf", "-inf", "-0", "0", "-0.0", "1e-40", "3e38", "0.1"];
        match special.get(usize::try_from(self.random(18)).unwrap()) {
            Some(text) => (*text).to_owned(),
            None => format!("{:e}", self.random(1 << 50) as f64 / 1024.0 - 1e9),
        }
    }

    fn timestamp(&mut self) -> String {
        match self.random(6) {
            0 => "@-9223372036854775808".to_owned(),
            1 => "@9223372036854775807".to_owned(),
            2 => "2021-11-02T22:10:25+01:00".to_owned(),
            3 => "0000-01-01T00:00:00Z".to_owned(),
            _ => format!("@{}", self.random(1 << 53)),
        }
    }

    fn string(&mut self) -> String {
        const PARTS: [&str; 14] = [
            "a",
            "é",
            "字",
            " ",
            r#"\""#,
            r"\\",
            r"\n",
            r"\t",
            r"\r",
            "#",
            "//",
            r"\u{1f600}",
            r"\000",
            "a longer piece of text that fits no cell",
        ];
        let mut text = "\"".to_owned();
        for _ in 0..self.random(6) {
            text += PARTS[usize::try_from(self.random(PARTS.len() as u64)).unwrap()];
        }
        text + "\""
    }
}
