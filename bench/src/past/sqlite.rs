//! SQLite with a history that triggers write: the whole row for each version, in a table clustered by row and
//! transaction, with an index on transactions.
//!
//! The log is written ahead, at `FULL` for durable commits and else at `NORMAL`; the cache has 256 MiB.

use std::path::Path;

use rusqlite::{Connection, Row, params};

use super::step::{Form, Peer, Store};
use super::work::{Account, Answer, Change, Difference, Failure, Question};

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE txn(id INTEGER PRIMARY KEY, time REAL NOT NULL, comment TEXT NOT NULL);
    CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT NOT NULL, balance INTEGER NOT NULL, note TEXT NOT NULL);
    CREATE TABLE account_history(account INTEGER NOT NULL, txn INTEGER NOT NULL, name TEXT, balance INTEGER,
        note TEXT, PRIMARY KEY(account, txn)) WITHOUT ROWID;
    CREATE INDEX account_history_by_txn ON account_history(txn);
    CREATE TRIGGER account_inserted AFTER INSERT ON account BEGIN
        INSERT OR REPLACE INTO account_history
        VALUES (new.id, (SELECT max(id) FROM txn), new.name, new.balance, new.note); END;
    CREATE TRIGGER account_updated AFTER UPDATE ON account BEGIN
        INSERT OR REPLACE INTO account_history
        VALUES (new.id, (SELECT max(id) FROM txn), new.name, new.balance, new.note); END;
    CREATE TRIGGER account_deleted AFTER DELETE ON account BEGIN
        INSERT OR REPLACE INTO account_history
        VALUES (old.id, (SELECT max(id) FROM txn), NULL, NULL, NULL); END;";
const INDEXES: &str = "
    CREATE UNIQUE INDEX account_by_balance ON account(balance);
    CREATE INDEX account_history_by_balance ON account_history(balance, txn);";

const BEGIN: &str = "INSERT INTO txn VALUES (?1, unixepoch('subsec'), ?2)";
const HISTORY: &str =
    "SELECT txn, balance, time, comment FROM account_history JOIN txn ON txn.id = txn
    WHERE account = ?1 AND balance IS NOT NULL ORDER BY txn";
const ROW: &str =
    "SELECT account, name, balance, note FROM account_history WHERE account = ?1 AND txn <= ?2
    ORDER BY txn DESC LIMIT 1";
const BY_BALANCE: &str = "SELECT account, name, balance, note FROM account_history AS found
    WHERE balance = ?1 AND txn <= ?2 AND NOT EXISTS (SELECT 1 FROM account_history AS later
        WHERE later.account = found.account AND later.txn > found.txn AND later.txn <= ?2)";
const FIRST: &str =
    "SELECT account, name, balance, note FROM (SELECT account, name, balance, note, max(txn)
    FROM account_history WHERE txn <= ?1 GROUP BY account) WHERE balance IS NOT NULL LIMIT 1";
const SUM: &str = "SELECT sum(balance) FROM
    (SELECT balance, max(txn) FROM account_history WHERE txn <= ?1 GROUP BY account)";
const DIFFERENCES: &str = "WITH changed AS
        (SELECT DISTINCT account FROM account_history WHERE txn > ?1 AND txn <= ?2),
    both AS (SELECT account,
        (SELECT balance FROM account_history AS old WHERE old.account = changed.account AND old.txn <= ?1
            ORDER BY old.txn DESC LIMIT 1) AS before,
        (SELECT balance FROM account_history AS new WHERE new.account = changed.account AND new.txn <= ?2
            ORDER BY new.txn DESC LIMIT 1) AS after
        FROM changed)
    SELECT account, before, after FROM both WHERE before IS NOT after ORDER BY account";
const UNDO: &str = "UPDATE account SET (name, balance, note) =
        (SELECT name, balance, note FROM account_history AS old
            WHERE old.account = account.id AND old.txn < ?1 ORDER BY old.txn DESC LIMIT 1)
    WHERE id IN (SELECT account FROM account_history WHERE txn = ?1)";

pub(super) struct Sqlite;

struct Accounts(Connection);

fn connect(folder: &Path, durable: bool) -> Result<Connection, Failure> {
    let connection = Connection::open(folder.join("past.sqlite"))?;
    connection.pragma_update(None, "synchronous", if durable { "FULL" } else { "NORMAL" })?;
    connection.pragma_update(None, "cache_size", -(256 << 10))?;
    Ok(connection)
}

impl Peer for Sqlite {
    fn create(&self, folder: &Path, form: Form) -> Result<Box<dyn Store>, Failure> {
        let connection = connect(folder, form == Form::Durable)?;
        connection.execute_batch(TABLES)?;
        if form == Form::Indexed {
            connection.execute_batch(INDEXES)?;
        }
        Ok(Box::new(Accounts(connection)))
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(Accounts(connect(folder, false)?)))
    }
}

impl Accounts {
    /// Runs a statement in a transaction of this number.
    fn write(
        &self,
        number: Option<u64>,
        comment: &str,
        act: impl FnOnce(&Connection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        self.0.prepare_cached(BEGIN)?.execute(params![number.map(u64::cast_signed), comment])?;
        act(&self.0)?;
        self.0.prepare_cached("COMMIT")?.execute(())?;
        Ok(())
    }
}

impl Store for Accounts {
    fn load(&mut self, accounts: &mut dyn Iterator<Item = Account>) -> Result<(), Failure> {
        self.write(Some(0), "load", |connection| {
            let mut insert =
                connection.prepare_cached("INSERT INTO account VALUES (?1, ?2, ?3, ?4)")?;
            for Account { id, name, balance, note } in accounts {
                insert.execute(params![id.cast_signed(), name, balance, note])?;
            }
            Ok(())
        })
    }

    fn commit(&mut self, change: &Change, comment: &str) -> Result<(), Failure> {
        self.write(Some(change.number), comment, |connection| {
            let mut update =
                connection.prepare_cached("UPDATE account SET balance = ?2 WHERE id = ?1")?;
            update.execute([change.row.cast_signed(), change.balance])?;
            Ok(())
        })
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        let number = u64::cast_signed;
        let one = |sql, wanted: &[i64]| {
            let mut statement = self.0.prepare_cached(sql)?;
            let row = statement.query_row(rusqlite::params_from_iter(wanted), account)?;
            Ok::<_, Failure>(Answer::Row(row))
        };
        Ok(match *question {
            Question::History { row } => {
                let mut statement = self.0.prepare_cached(HISTORY)?;
                let versions = statement.query_map([number(row)], |row| {
                    let (_, _): (f64, String) = (row.get(2)?, row.get(3)?);
                    Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))
                })?;
                Answer::History(versions.collect::<Result<_, _>>()?)
            }
            Question::Row { row, moment } => one(ROW, &[number(row), number(moment)])?,
            Question::RowByBalance { balance, moment } => {
                one(BY_BALANCE, &[balance, number(moment)])?
            }
            Question::FirstRow { moment } => one(FIRST, &[number(moment)])?,
            Question::Sum { moment } => {
                let mut statement = self.0.prepare_cached(SUM)?;
                Answer::Sum(statement.query_row([number(moment)], |row| row.get(0))?)
            }
            Question::Differences { after, to } => {
                let mut statement = self.0.prepare_cached(DIFFERENCES)?;
                let rows = statement.query_map([number(after), number(to)], |row| {
                    let id = row.get::<_, i64>(0)?.cast_unsigned();
                    Ok(Difference { row: id, before: row.get(1)?, after: row.get(2)? })
                })?;
                Answer::Differences(rows.collect::<Result<_, _>>()?)
            }
        })
    }

    fn balance(&mut self, row: u64) -> Result<i64, Failure> {
        let mut statement = self.0.prepare_cached("SELECT balance FROM account WHERE id = ?1")?;
        Ok(statement.query_row([row.cast_signed()], |row| row.get(0))?)
    }

    fn undo(&mut self, number: u64) -> Result<(), Failure> {
        self.write(None, "undo", |connection| {
            connection.prepare_cached(UNDO)?.execute([number.cast_signed()])?;
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
    let (id, name) = (row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?);
    Ok(Account { id, name, balance: row.get(2)?, note: row.get(3)? })
}
