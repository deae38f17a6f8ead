//! Random scripts: the schema, commits, and what else isn't about rows.

use std::collections::BTreeMap;
use std::fmt::Write;

const TYPES: [&str; 21] = [
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
    "blob",
    "date",
    "uuid",
    "json",
    "bytes(3)",
    "decimal(2)",
    "enum(red,green)",
];

pub(super) const RULES: [&str; 3] = ["restrict", "cascade", "set_null"];

#[derive(Clone)]
pub(super) struct Field {
    /// Its place among all fields of the script.
    pub(super) key: u64,
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) nullable: bool,
    /// True if a unique index is on it: then each value is written once.
    pub(super) unique: bool,
    /// Where it leads if it is an enforced reference, and the rule.
    pub(super) enforced: Option<(u64, &'static str)>,
}

#[derive(Clone)]
pub(super) struct Table {
    /// Its place among all tables of the script.
    pub(super) key: u64,
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The rows, with where their enforced references lead, by field.
    pub(super) rows: BTreeMap<u64, BTreeMap<u64, u64>>,
    pub(super) next_id: u64,
    pub(super) single: bool,
}

#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) tables: Vec<Table>,
    /// Name, table and fields.
    indexes: Vec<(String, u64, Vec<u64>)>,
    pub(super) blobs: u64,
}

/// Writes scripts that are right: it knows which rows are there.
pub(super) struct Generator {
    seed: u64,
    pub(super) state: State,
    committed: State,
    begun: bool,
    /// True if the last blob can be appended to.
    open_blob: bool,
    /// For names and values that must not be there twice.
    pub(super) counter: u64,
    script: String,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            state: State::default(),
            committed: State::default(),
            begun: false,
            open_blob: false,
            counter: 0,
            script: String::new(),
        }
    }

    /// The next of a sequence of random numbers (splitmix64).
    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    pub(super) fn script(mut self) -> String {
        for _ in 0..self.random(160) + 5 {
            self.statement();
        }
        self.script
    }

    pub(super) fn line(&mut self, text: &str) {
        self.script.push_str(text);
        self.script.push('\n');
    }

    fn key(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn statement(&mut self) {
        match self.random(50) {
            0..=1 => self.create_table(),
            2..=7 => self.add_field(),
            8 => self.create_index(),
            9..=11 => self.change_schema(),
            12..=16 => self.insert(),
            17..=19 => self.insert_at(),
            20..=21 => self.insert_into(),
            22..=28 => self.update(),
            29..=31 => self.delete(),
            32..=35 => self.vector(),
            36..=38 => self.write_blob(),
            39 => {
                let text = self.string();
                self.line(&format!("comment {text}"));
            }
            40 => {
                let seconds = self.random(1 << 40).cast_signed() - (1 << 39);
                self.line(&format!("timestamp {seconds}"));
            }
            41 => self.line("valid_data"),
            42 if !self.begun => {
                self.line("begin");
                self.begun = true;
            }
            43..=47 => self.commit(),
            48 => {
                self.line("rollback");
                self.begun = false;
                self.open_blob = false;
                self.state = self.committed.clone();
            }
            _ => self.line("  # nothing // at all"),
        }
    }

    fn commit(&mut self) {
        let mut line = "commit".to_owned();
        match self.random(6) {
            0 => "soft_checkpoint".clone_into(&mut line),
            1 => "hard_checkpoint".clone_into(&mut line),
            level => {
                line += ["", " soft", " checksummed", ""][usize::try_from(level).unwrap() - 2];
                if self.random(2) == 0 {
                    let time = self.timestamp();
                    write!(line, " at {time}").unwrap();
                }
            }
        }
        self.line(&line);
        self.begun = false;
        self.open_blob = false;
        self.committed = self.state.clone();
    }

    fn write_blob(&mut self) {
        if self.open_blob && self.random(2) == 0 {
            return self.line("append_blob 0x6162ff");
        }
        let text = self.string();
        self.open_blob = text != "\"\"";
        self.line(&format!("write_blob {text}"));
        self.state.blobs += 1;
    }

    /// Picks a table.
    pub(super) fn table(&mut self) -> Option<usize> {
        let count = self.state.tables.len() as u64;
        (count > 0).then(|| usize::try_from(self.random(count)).unwrap())
    }

    fn create_table(&mut self) {
        let key = self.key();
        let name = format!("t{key}");
        self.line(&format!("create_table {name}"));
        let (fields, rows) = (Vec::new(), BTreeMap::new());
        self.state.tables.push(Table { key, name, fields, rows, next_id: 0, single: false });
    }

    fn add_field(&mut self) {
        let Some(table) = self.table() else { return };
        let (key, owner) = (self.key(), self.state.tables[table].name.clone());
        let mut ty = TYPES[usize::try_from(self.random(TYPES.len() as u64)).unwrap()].to_owned();
        let mut enforced = None;
        if self.random(4) == 0 {
            let target = self.table().unwrap();
            let Table { key, name, .. } = &self.state.tables[target];
            let (key, mut text) = (*key, format!("references {name}"));
            if let Some(&rule) = RULES.get(usize::try_from(self.random(6)).unwrap()) {
                enforced = Some((key, rule));
                write!(text, " {rule}").unwrap();
            }
            ty = text;
        }
        let (name, is_reference) = (format!("f{key}"), ty.starts_with("ref"));
        let nullable = is_reference || ty == "blob" || self.random(3) == 0;
        let mut line = format!("add_field {owner} {name} {ty}");
        if nullable && !is_reference && ty != "blob" {
            line += " null";
        }
        let field = Field { key, name, ty, nullable, unique: false, enforced };
        if enforced.is_none() && field.ty != "blob" && self.random(3) == 0 {
            let value = self.value(&field);
            write!(line, " default {value}").unwrap();
        }
        self.line(&line);
        self.state.tables[table].fields.push(field);
    }

    /// Makes an index, which is unique where that can't go wrong: on a new number that may be null.
    fn create_index(&mut self) {
        let Some(table) = self.table() else { return };
        let key = self.key();
        let (name, owner) = (format!("i{key}"), self.state.tables[table].clone());
        let on = if owner.fields.is_empty() || self.random(2) == 0 {
            let (field, ty) = (format!("f{key}"), "uint64".to_owned());
            self.line(&format!("add_field {} {field} uint64 null", owner.name));
            self.line(&format!("create_unique_index {name} {} {field}", owner.name));
            let enforced = None;
            let field = Field { key, name: field, ty, nullable: true, unique: true, enforced };
            self.state.tables[table].fields.push(field);
            vec![key]
        } else {
            let mut on = owner.fields;
            on.truncate(1 + usize::try_from(self.random(3)).unwrap());
            on.reverse();
            let mut columns: Vec<_> = on.iter().map(|field| field.name.clone()).collect();
            for column in &mut columns {
                *column += if self.random(3) == 0 { " desc" } else { "" };
            }
            self.line(&format!("create_index {name} {} {}", owner.name, columns.join(",")));
            on.iter().map(|field| field.key).collect()
        };
        self.state.indexes.push((name, owner.key, on));
    }

    /// Drops or renames something, makes a table one of a single row, or sets whether the history index has it.
    fn change_schema(&mut self) {
        let Some(at) = self.table() else { return };
        let (key, table) = (self.key(), self.state.tables[at].clone());
        let field = self.random(table.fields.len() as u64 + 1);
        let field = table.fields.get(usize::try_from(field).unwrap());
        match (self.random(13), field) {
            (0, _) => self.drop_table(at),
            (1..=2, _) => {
                self.line(&format!("rename_table {} r{key}", table.name));
                self.state.tables[at].name = format!("r{key}");
            }
            (3..=4, Some(field)) => {
                self.line(&format!("rename_field {} {} r{key}", table.name, field.name));
                let fields = &mut self.state.tables[at].fields;
                let renamed = fields.iter_mut().find(|known| known.key == field.key);
                renamed.unwrap().name = format!("r{key}");
            }
            (5..=6, Some(field)) if !self.is_indexed(field) => {
                self.line(&format!("drop_field {} {}", table.name, field.name));
                self.state.tables[at].fields.retain(|known| known.key != field.key);
            }
            (7, _) if !self.state.indexes.is_empty() => {
                let at = self.random(self.state.indexes.len() as u64);
                let (name, ..) = self.state.indexes.remove(usize::try_from(at).unwrap());
                self.line(&format!("drop_index {name}"));
            }
            (8, _) => self.line(&format!("custom c{key}")),
            (9, _) => {
                self.line(&format!("set_single_row {} false", table.name));
                self.state.tables[at].single = false;
            }
            (10..=11, _) if table.rows.len() < 2 => {
                self.line(&format!("set_single_row {} true", table.name));
                self.state.tables[at].single = true;
                if table.rows.is_empty() {
                    self.take_id(at, table.next_id);
                }
            }
            (12, _) => {
                let no = if self.random(2) == 0 { "no_" } else { "" };
                self.line(&format!("{no}history_index {}", table.name));
            }
            _ => {}
        }
    }

    fn is_indexed(&self, field: &Field) -> bool {
        self.state.indexes.iter().any(|(_, _, on)| on.contains(&field.key))
    }

    fn drop_table(&mut self, at: usize) {
        let Table { key, name, .. } = self.state.tables[at].clone();
        let others = self.state.tables.iter().filter(|table| table.key != key);
        let mut fields = others.flat_map(|table| &table.fields);
        if fields.all(|field| field.enforced.is_none_or(|(target, _)| target != key)) {
            self.line(&format!("drop_table {name}"));
            self.state.tables.remove(at);
            self.state.indexes.retain(|(_, table, _)| *table != key);
        }
    }
}
