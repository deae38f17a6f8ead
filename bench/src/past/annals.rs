//! Annals: questions through its own functions, all options as they are.

use std::path::{Path, PathBuf};

use annals::{
    Command, Database, FieldNumber, IndexNumber, Level, Options, RowId, TableNumber, Transaction,
    Txid, Type, Value, ValueRef,
};
use annals_tools::Undo as _;

use super::step::{Form, Peer, Store};
use super::work::{Account, Answer, Change, Difference, Failure, Question};

const TABLE: TableNumber = TableNumber(0);
const NAME: FieldNumber = FieldNumber(0);
const BALANCE: FieldNumber = FieldNumber(1);
const NOTE: FieldNumber = FieldNumber(2);
const INDEX: IndexNumber = IndexNumber(0);
/// The transaction that loads. The one before it makes the table.
const LOADED: u64 = 2;

pub(super) struct Annals;

struct Accounts(Database);

fn file(folder: &Path) -> PathBuf {
    folder.join("past.annals")
}

impl Peer for Annals {
    fn create(&self, folder: &Path, form: Form) -> Result<Box<dyn Store>, Failure> {
        let options = match form {
            Form::Durable => Options::new(),
            Form::Soft | Form::Indexed => Options::new().level(Level::Soft),
            Form::NoKeyFrames => Options::new().level(Level::Soft).key_frames(0),
        };
        let db = options.open(file(folder))?;
        db.write(|tx| define(tx, form == Form::Indexed))?;
        Ok(Box::new(Accounts(db)))
    }

    fn open(&self, folder: &Path) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(Accounts(Options::new().level(Level::Soft).open(file(folder))?)))
    }
}

fn define(tx: &mut Transaction<'_>, indexed: bool) -> annals::Result<()> {
    tx.apply_command(&Command::CreateTable { name: "account".to_owned() })?;
    for (name, ty) in [("name", Type::String), ("balance", Type::Int64), ("note", Type::String)] {
        let (name, table, nullable) = (name.to_owned(), TABLE, false);
        tx.apply_command(&Command::AddField { table, name, ty, nullable, default: None })?;
    }
    if indexed {
        let (name, fields) = ("by_balance".to_owned(), vec![BALANCE]);
        tx.apply_command(&Command::CreateIndex {
            name,
            table: TABLE,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        })?;
    }
    Ok(())
}

impl Store for Accounts {
    fn load(&mut self, accounts: &mut dyn Iterator<Item = Account>) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            for Account { name, balance, note, .. } in accounts {
                let row = [ValueRef::String(&name), balance.into(), ValueRef::String(&note)];
                tx.insert(TABLE, &row)?;
            }
            Ok(())
        })?)
    }

    fn commit(&mut self, change: &Change, comment: &str) -> Result<(), Failure> {
        Ok(self.0.write(|tx| {
            tx.comment(comment)?;
            tx.update(TABLE, RowId(change.row), BALANCE, change.balance.into())
        })?)
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        let at = |moment| self.0.at(Txid(LOADED + moment));
        Ok(match *question {
            Question::History { row } => {
                let versions = self.0.history_of(TABLE, RowId(row))?.map(|version| {
                    let version = version?;
                    Ok((version.txid.0 - LOADED, balance(version.change.after.as_deref())?))
                });
                Answer::History(versions.collect::<Result<_, Failure>>()?)
            }
            Question::Row { row, moment } => {
                account(&at(moment)?.table(TABLE)?.find(RowId(row))?.ok_or("no row")?)
            }
            Question::RowByBalance { balance, moment } => {
                account(&at(moment)?.index(INDEX)?.first(&[balance.into()])?.ok_or("no row")?)
            }
            Question::FirstRow { moment } => {
                account(&at(moment)?.table(TABLE)?.rows().next().ok_or("no row")??)
            }
            Question::Sum { moment } => {
                let then = at(moment)?;
                let table = then.table(TABLE)?;
                let balances = table.vector(BALANCE, RowId(0), table.len())?;
                let mut sum = 0;
                for balances in balances.chunks::<i64>()? {
                    sum += balances?.iter().sum::<i64>();
                }
                Answer::Sum(sum)
            }
            Question::Differences { after, to } => {
                let changes = self.0.read().differences(Txid(LOADED + after), Txid(LOADED + to))?;
                let differences = changes.into_iter().map(|change| {
                    let before = balance(change.before.as_deref())?;
                    let after = balance(change.after.as_deref())?;
                    Ok(Difference { row: change.id.0, before, after })
                });
                Answer::Differences(differences.collect::<Result<_, Failure>>()?)
            }
        })
    }

    fn balance(&mut self, row: u64) -> Result<i64, Failure> {
        Ok(self.0.read().table(TABLE)?.get(RowId(row))?.read(BALANCE))
    }

    fn undo(&mut self, number: u64) -> Result<(), Failure> {
        Ok(self.0.write(|tx| tx.revert(Txid(LOADED + number)))?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}

fn balance(values: Option<&[Value]>) -> Result<i64, Failure> {
    match values.and_then(|values| values.get(BALANCE.0 as usize)) {
        Some(Value::Int64(balance)) => Ok(*balance),
        other => Err(format!("{other:?} is no balance").into()),
    }
}

fn account(row: &annals::Row<'_>) -> Answer {
    let text = |field| row.read::<&str>(field).to_owned();
    let (id, balance) = (row.id().0, row.read(BALANCE));
    Answer::Row(Account { id, name: text(NAME), balance, note: text(NOTE) })
}
