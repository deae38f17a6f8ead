//! Queries that compare anything with anything, anywhere.

use crate::random::{IDS, INTEGERS, TABLES};
use crate::shop::Random;

/// A table of any kind, with the columns and values to compare them with.
pub(super) struct Any {
    pub(super) name: String,
    columns: Vec<(String, &'static [&'static str])>,
}

/// Moments in the history of the world, before and after which rows were changed.
pub(super) const MOMENTS: [u64; 3] = [2, 4, 7];
const KINDS: &[&str] = &["'insert'", "'update'", "'delete'", "NULL", "5"];
const TXIDS: &[&str] = &["2", "3", "'4'", "4.0", "4.5", "-1", "9", "NULL", "'x'", "x'03'"];

/// Returns the tables, their past and their history.
pub(super) fn all() -> Vec<Any> {
    let mut all = Vec::new();
    for table in &TABLES {
        let own: Vec<_> =
            table.columns.iter().map(|(name, values)| ((*name).to_owned(), *values)).collect();
        let name = table.name;
        all.push(Any { name: name.to_owned(), columns: own.clone() });
        for moment in MOMENTS {
            for kind in ["at", "as_it_was"] {
                let name = format!("{name}_{kind}({moment})");
                all.push(Any { name, columns: own.clone() });
            }
        }
        let sides = ["old", "new"].into_iter().flat_map(|side| {
            let fields = own.iter().skip(1);
            fields.map(move |(name, values)| (format!("{side}_{name}"), *values))
        });
        let sides: Vec<_> = sides.collect();
        let with = |columns: &[(&str, &'static [&'static str])]| {
            let own = columns.iter().map(|(name, values)| ((*name).to_owned(), *values));
            own.chain(sides.iter().cloned()).collect::<Vec<_>>()
        };
        let columns = with(&[("id", IDS), ("txid", TXIDS), ("kind", KINDS)]);
        all.push(Any { name: format!("{name}_history"), columns });
        let columns = with(&[("id", IDS), ("kind", KINDS)]);
        all.push(Any { name: format!("{name}_changes(2, 7)"), columns });
        let columns: &[(&str, &'static [&'static str])] =
            &[("id", IDS), ("value", INTEGERS), ("txid", TXIDS), ("kind", KINDS)];
        let columns = columns.iter().map(|(name, values)| ((*name).to_owned(), *values)).collect();
        all.push(Any { name: format!("{name}_blame"), columns });
    }
    all
}

/// Makes queries that compare anything with anything, anywhere.
pub(super) struct Mixed<'a> {
    pub(super) all: &'a [Any],
    pub(super) random: Random,
}

impl Mixed<'_> {
    fn pick(&mut self) -> usize {
        // Those that are there are asked more often than their past.
        match self.random.below(4) {
            0 => self.random.below(self.all.len() as u64) as usize,
            _ => self.present(),
        }
    }

    fn present(&mut self) -> usize {
        self.all.len() / TABLES.len() * self.random.below(3) as usize
    }

    fn column(&mut self, table: usize, alias: &str) -> String {
        let all = self.all;
        let columns = &all[table].columns;
        format!("{alias}.{}", columns[self.random.below(columns.len() as u64) as usize].0)
    }

    fn value(&mut self) -> &'static str {
        let all = self.all;
        let table = &all[self.random.below(all.len() as u64) as usize];
        let (_, values) = &table.columns[self.random.below(table.columns.len() as u64) as usize];
        self.random.one_of(values)
    }

    /// A condition of two tables.
    fn condition(&mut self, tables: &[(usize, &str)]) -> String {
        let (table, alias) = self.random.one_of(tables);
        let column = self.column(table, alias);
        let (other, other_alias) = self.random.one_of(tables);
        let right = match self.random.below(5) {
            0 | 1 => self.column(other, other_alias),
            2 => format!(
                "CAST({} AS {})",
                self.value(),
                self.random.one_of(&["TEXT", "INTEGER", "REAL", "BLOB"])
            ),
            3 => format!("+{}", self.column(other, other_alias)),
            _ => self.value().to_owned(),
        };
        let op = self.random.one_of(&["=", "=", "=", "<", "<=", ">", ">=", "IS", "<>", "IS NOT"]);
        match self.random.below(12) {
            0 => {
                let start = self.random.one_of(&["A", "a", "5", "", "b%", "Z"]);
                let (word, end) =
                    self.random.one_of(&[("LIKE", "%"), ("GLOB", "*"), ("NOT LIKE", "%")]);
                format!("{column} {word} '{start}{end}'")
            }
            1 => format!("{column} IS {}NULL", self.random.one_of(&["", "NOT "])),
            2 => format!("{column} BETWEEN {} AND {right}", self.value()),
            3 => {
                let not = self.random.one_of(&["", "", "NOT "]);
                format!("{column} {not}IN ({}, {right}, {})", self.value(), self.value())
            }
            4 => {
                let collation =
                    self.random.one_of(&["NOCASE", "BINARY", "RTRIM", "annals_decimal"]);
                format!("{column} {op} {right} COLLATE {collation}")
            }
            5 => {
                let inner = self.subquery(&[]);
                let not = self.random.one_of(&["", "", "NOT "]);
                format!("{column} {not}IN ({inner})")
            }
            _ => format!("{column} {op} {right}"),
        }
    }

    fn conditions(&mut self, tables: &[(usize, &str)]) -> String {
        let count = 1 + self.random.below(3);
        let word = self.random.one_of(&[" AND ", " AND ", " OR "]);
        (0..count).map(|_| self.condition(tables)).collect::<Vec<_>>().join(word)
    }

    /// A query of one column, which may look at outer tables.
    fn subquery(&mut self, outer: &[(usize, &str)]) -> String {
        // For each row of an outer table all of the history would be read.
        let table = if outer.is_empty() { self.pick() } else { self.present() };
        let column = self.column(table, "s");
        let filter = match self.random.below(2) {
            0 if outer.is_empty() => String::new(),
            _ => {
                let column = self.column(table, "s");
                let right = match outer {
                    [] => self.value().to_owned(),
                    outer => {
                        let (other, alias) = self.random.one_of(outer);
                        self.column(other, alias)
                    }
                };
                format!(" WHERE {column} = {right}")
            }
        };
        format!("SELECT {column} FROM @{}@ s{filter}", self.all[table].name)
    }

    pub(super) fn query(&mut self) -> String {
        let (one, two) = (self.pick(), self.present());
        let tables = [(one, "a"), (two, "b")];
        let (left, right) = (&self.all[one].name, &self.all[two].name);
        let sums = "count(*), sum(a.id), sum(b.id)";
        match self.random.below(8) {
            0 | 1 => {
                let kind = self.random.one_of(&[
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                ]);
                let (on, filter) = (self.conditions(&tables), self.conditions(&tables));
                let filter =
                    if self.random.is(2) { format!(" WHERE {filter}") } else { String::new() };
                format!("SELECT {sums} FROM @{left}@ a {kind} @{right}@ b ON {on}{filter}")
            }
            2 => {
                let filter = self.conditions(&tables[..1]);
                let column = self.column(one, "a");
                let order = self.random.one_of(&["", " DESC"]);
                let order = format!("ORDER BY {column}{order}, a.id LIMIT 9");
                let columns = format!("a.id, {column}");
                // Rows of the history with equal ids may come in any order.
                match left.contains("_history") || left.contains("_blame") {
                    true => format!("SELECT {columns} FROM @{left}@ a WHERE {filter}"),
                    false => format!("SELECT {columns} FROM @{left}@ a WHERE {filter} {order}"),
                }
            }
            3 => {
                let inner = self.subquery(&tables[..1]);
                let word = self.random.one_of(&["EXISTS", "NOT EXISTS"]);
                format!("SELECT a.id FROM @{left}@ a WHERE {word} ({inner})")
            }
            4 => {
                let inner = self.subquery(&[]);
                let columns = [self.column(one, "a"), self.column(one, "a")].join(", ");
                let (table, not) = (self.pick(), self.random.one_of(&["", "NOT "]));
                // With an index on both, SQLite 3.54 takes null for false in its own tables.
                let pair = [self.column(table, "+s"), self.column(table, "+s")].join(", ");
                let pairs = format!("SELECT {pair} FROM @{}@ s", self.all[table].name);
                let filter = self.condition(&tables[..1]);
                format!(
                    "SELECT a.id FROM @{left}@ a WHERE ({columns}) {not}IN ({pairs}) OR {filter} AND a.id IN ({inner})"
                )
            }
            5 => {
                let (mut c, d) = (self.column(one, "x"), self.column(two, "y"));
                // What is under a column of floats is a float or not, as SQLite 3.54 happens to look for it.
                if ["area", "score"].iter().any(|float| c.ends_with(float)) {
                    c.insert(0, '+');
                }
                let table = self.pick();
                let on = format!("{} = u.c", self.column(table, "a"));
                format!(
                    "SELECT count(*), sum(a.id) FROM @{}@ a JOIN (SELECT {c} AS c FROM @{left}@ x UNION ALL \
                     SELECT {d} FROM @{right}@ y) u ON {on}",
                    self.all[table].name
                )
            }
            6 => self.lateral(),
            _ => {
                let (inner, filter) = (self.subquery(&tables[..1]), self.condition(&tables[..1]));
                let inner =
                    inner.replacen("SELECT ", "SELECT count(", 1).replacen(" FROM", ") FROM", 1);
                format!("SELECT a.id, ({inner}) FROM @{left}@ a WHERE {filter}")
            }
        }
    }

    /// A table function whose argument is a column of another table.
    fn lateral(&mut self) -> String {
        let (table, of) = (
            self.random.one_of(&TABLES.map(|it| it.name)),
            self.random.one_of(&["history", "blame"]),
        );
        let filter = match self.random.below(4) {
            0 => format!(" AND h.id = {}", self.random.one_of(IDS)),
            1 => format!(
                " AND h.id IN ({}, {}, a.id)",
                self.random.one_of(IDS),
                self.random.one_of(IDS)
            ),
            2 => format!(
                " AND h.txid {} {}",
                self.random.one_of(&["=", "<", ">=", "IS"]),
                self.random.one_of(TXIDS)
            ),
            _ => String::new(),
        };
        if self.random.is(3) {
            let id = self.random.one_of(&["1", "5", "17", "99"]);
            let filter = filter.replace("a.id", "3");
            return format!(
                "SELECT h.id, h.txid, h.kind FROM «temp.{table}_{of}({id})|main.{table}_{of}» h WHERE «1|h.id = {id}»{filter}"
            );
        }
        if self.random.is(3) {
            let moments = MOMENTS.map(|moment| moment.to_string()).join(",");
            return format!(
                "SELECT h.id, l.txid FROM (SELECT txid FROM @annals_log@ WHERE txid IN ({moments})) l \
                 JOIN «temp.{table}_at(l.txid)|main.{table}_at» h ON «1|h.annals_moment = l.txid»{}",
                filter.replace("h.txid", "l.txid").replace("a.id", "l.txid")
            );
        }
        format!(
            "SELECT a.id, h.txid, h.kind FROM @{table}@ a JOIN «temp.{table}_{of}(a.id)|main.{table}_{of}» h \
             ON «1|h.id = a.id»{filter}"
        )
    }
}
