//! DoltLite: a `dolt_commit` for each transaction, and its own tables of the past.
//!
//! Commits that don't wait for the disk are at `synchronous = OFF`, durable ones at its default; the cache has 256
//! MiB. Moments are hashes of commits, which a program has to remember: they are in a file beside the database's
//! folder. A history is read from `dolt_history_account`, which has a row for each commit, and repetitions are
//! dropped here; `dolt_diff_account` takes four times as long for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use doltlite::{Connection, Row, Value};

use crate::step::{Form, Peer, Store};
use crate::work::{Account, Answer, Change, Difference, Failure, Question};

const TABLE: &str = "CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT NOT NULL,
    balance INTEGER NOT NULL, note TEXT NOT NULL)";
const INDEX: &str = "CREATE UNIQUE INDEX account_by_balance ON account(balance)";
const COMMIT: &str = "SELECT dolt_commit('-A', '-m', ?1)";
const HISTORY: &str = "SELECT commit_hash, balance FROM dolt_history_account WHERE id = ?1";
const ROW: &str = "SELECT id, name, balance, note FROM dolt_at_account(?1) WHERE id = ?2";
const BY_BALANCE: &str =
    "SELECT id, name, balance, note FROM dolt_at_account(?1) WHERE balance = ?2";
const FIRST: &str = "SELECT id, name, balance, note FROM dolt_at_account(?1) LIMIT 1";
const SUM: &str = "SELECT sum(balance) FROM dolt_at_account(?1)";
const DIFFERENCES: &str = "SELECT to_id, from_balance, to_balance FROM dolt_diff_account(?1, ?2)
    ORDER BY to_id";

pub(crate) struct DoltLite;

struct Accounts {
    connection: Connection,
    /// Where the hashes of commits are kept.
    file: PathBuf,
    /// The hash of each commit, from the load on.
    hashes: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Accounts {
    fn open(folder: &Path, durable: bool) -> Result<Self, Failure> {
        let connection = Connection::open(folder.join("past.doltlite"))?;
        connection.execute_batch("PRAGMA cache_size = -262144")?;
        if !durable {
            connection.execute_batch("PRAGMA synchronous = OFF")?;
        }
        let file = folder.with_extension("hashes");
        Ok(Self { connection, file, hashes: Vec::new(), numbers: HashMap::new() })
    }

    /// Makes a commit of all changes.
    fn seal(&mut self, comment: &str) -> Result<(), Failure> {
        let row = self.connection.query_row(COMMIT, &[comment.into()])?;
        self.hashes.push(text(row.as_ref(), 0)?);
        Ok(())
    }

    /// Returns the hash of the commit of a change.
    fn hash(&self, number: u64) -> Result<Value, Failure> {
        let hash = self.hashes.get(usize::try_from(number)?).ok_or("no such commit")?;
        Ok(Value::from(hash.as_str()))
    }

    fn history(&self, row: u64) -> Result<Answer, Failure> {
        let mut statement = self.connection.prepare(HISTORY)?;
        statement.bind(1, &Value::Integer(row.cast_signed()))?;
        let mut versions = Vec::new();
        while statement.step()? {
            let row = statement.row();
            let number = self.numbers.get(&text(Some(&row), 0)?).ok_or("an unknown commit")?;
            versions.push((*number, integer(Some(&row), 1)?));
        }
        versions.sort_unstable();
        versions.dedup_by_key(|(_, balance)| *balance);
        Ok(Answer::History(versions))
    }

    fn account(&self, sql: &str, wanted: &[Value]) -> Result<Answer, Failure> {
        let row = self.connection.query_row(sql, wanted)?;
        let row = row.as_ref();
        let (id, balance) = (integer(row, 0)?.cast_unsigned(), integer(row, 2)?);
        Ok(Answer::Row(Account { id, name: text(row, 1)?, balance, note: text(row, 3)? }))
    }
}

fn integer(row: Option<&Row>, place: usize) -> Result<i64, Failure> {
    let value = row.and_then(|row| row.get(place)).and_then(Value::as_i64);
    value.ok_or_else(|| "no number".into())
}

fn text(row: Option<&Row>, place: usize) -> Result<String, Failure> {
    let value = row.and_then(|row| row.get(place)).and_then(Value::as_str);
    Ok(value.ok_or("no text")?.to_owned())
}

impl Peer for DoltLite {
    fn create(&self, folder: &Path, form: Form) -> Result<Box<dyn Store>, Failure> {
        let accounts = Accounts::open(folder, form == Form::Durable)?;
        accounts.connection.execute_batch(TABLE)?;
        if form == Form::Indexed {
            accounts.connection.execute_batch(INDEX)?;
        }
        Ok(Box::new(accounts))
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(Accounts::open(folder, false)?))
    }
}

impl Store for Accounts {
    fn prepare(&mut self) -> Result<(), Failure> {
        self.hashes = std::fs::read_to_string(&self.file)?.lines().map(str::to_owned).collect();
        self.numbers = self.hashes.iter().cloned().zip(0..).collect();
        Ok(())
    }

    fn load(&mut self, accounts: &mut dyn Iterator<Item = Account>) -> Result<(), Failure> {
        self.connection.execute_batch("BEGIN")?;
        let mut insert = self.connection.prepare("INSERT INTO account VALUES (?1, ?2, ?3, ?4)")?;
        for Account { id, name, balance, note } in accounts {
            let values = [id.cast_signed().into(), name.into(), balance.into(), note.into()];
            for (place, value) in (1..).zip(&values) {
                insert.bind(place, value)?;
            }
            insert.step()?;
            insert.reset()?;
        }
        drop(insert);
        self.seal("load")
    }

    fn commit(&mut self, change: &Change, comment: &str) -> Result<(), Failure> {
        self.connection.execute_batch("BEGIN")?;
        let wanted = [change.balance.into(), change.row.cast_signed().into()];
        self.connection.execute("UPDATE account SET balance = ?1 WHERE id = ?2", &wanted)?;
        self.seal(comment)
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        let number = |number: u64| Value::Integer(number.cast_signed());
        Ok(match *question {
            Question::History { row } => self.history(row)?,
            Question::Row { row, moment } => {
                self.account(ROW, &[self.hash(moment)?, number(row)])?
            }
            Question::RowByBalance { balance, moment } => {
                self.account(BY_BALANCE, &[self.hash(moment)?, balance.into()])?
            }
            Question::FirstRow { moment } => self.account(FIRST, &[self.hash(moment)?])?,
            Question::Sum { moment } => {
                let row = self.connection.query_row(SUM, &[self.hash(moment)?])?;
                Answer::Sum(integer(row.as_ref(), 0)?)
            }
            Question::Differences { after, to } => {
                let both = [self.hash(after)?, self.hash(to)?];
                let rows = self.connection.query(DIFFERENCES, &both)?;
                let differences = rows.iter().map(|row| {
                    let number = |place| integer(Some(row), place);
                    let row = number(0)?.cast_unsigned();
                    Ok(Difference { row, before: number(1)?, after: number(2)? })
                });
                Answer::Differences(differences.collect::<Result<_, Failure>>()?)
            }
        })
    }

    fn balance(&mut self, row: u64) -> Result<i64, Failure> {
        let wanted = [row.cast_signed().into()];
        let row =
            self.connection.query_row("SELECT balance FROM account WHERE id = ?1", &wanted)?;
        integer(row.as_ref(), 0)
    }

    fn undo(&mut self, number: u64) -> Result<(), Failure> {
        let row = self.connection.query_row("SELECT dolt_revert(?1)", &[self.hash(number)?])?;
        text(row.as_ref(), 0).map(drop)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        if self.numbers.is_empty() {
            std::fs::write(&self.file, self.hashes.join("\n"))?;
        }
        Ok(())
    }
}
