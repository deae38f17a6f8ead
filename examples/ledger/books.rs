//! The books: accounts, and transfers between them.

use std::collections::BTreeSet;
use std::path::Path;

use annals::typed::{Summand, Viewed};
use annals::{Date, Decimal, Moment, Result};

use crate::db::{self, Change, Tables, account, entry, transfer};

pub(crate) type Money = Decimal<2>;

pub(crate) struct Ledger(db::Database);

/// A line of a statement.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) day: Date,
    pub(crate) memo: String,
    pub(crate) amount: Money,
    pub(crate) balance: Money,
}

impl Ledger {
    /// Opens the books, and upgrades those of version 1.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let db = db::Database::open(path, db::Customs { copy_days: &mut copy_days })?;
        db.check_commits("a transfer sums to zero", |proposed| {
            for transfer in touched(proposed.changes())? {
                let entries = proposed.after().entry().by_transfer().with_transfer(transfer);
                let sum = entries.query().sum(|entry| entry.amount())?;
                if sum != Money::default() {
                    return Err(format!("this one to {sum}").into());
                }
            }
            Ok(())
        })?;
        Ok(Self(db))
    }

    pub(crate) fn open_account(&self, name: &str) -> Result<account::Id> {
        self.0.write(|tx| Ok(tx.insert(account::New { name })?))
    }

    /// Books a transfer: what each account gets, or gives if the amount is negative.
    pub(crate) fn transfer(
        &self,
        day: Date,
        memo: &str,
        entries: &[(account::Id, Money)],
    ) -> Result<transfer::Id> {
        self.0.write(|tx| {
            let transfer = tx.insert(transfer::New { memo })?;
            for &(account, amount) in entries {
                tx.insert(entry::New { transfer, account, amount, day })?;
            }
            Ok(transfer)
        })
    }

    /// Takes back a transfer. It stays in the history.
    pub(crate) fn cancel(&self, transfer: transfer::Id, why: &str) -> Result<()> {
        self.0.write(|tx| {
            tx.comment(why)?;
            Ok(tx.delete(transfer)?)
        })
    }

    /// The books as they are.
    pub(crate) fn now(&self) -> db::Snapshot {
        self.0.read()
    }

    /// The books as they were.
    pub(crate) fn at(&self, moment: impl Into<Moment>) -> Result<db::Snapshot> {
        self.0.at(moment)
    }

    pub(crate) fn close(self) -> Result<()> {
        self.0.close()
    }
}

/// What an account had at the end of a day.
pub(crate) fn balance(
    books: &Tables<impl Viewed>,
    account: account::Id,
    day: Date,
) -> Result<Money> {
    let entries = books.entry().by_account_and_day().range_with_account(account, ..=day);
    entries.query().sum(|entry| entry.amount())
}

/// The entries of an account up to a day, each with the balance after it.
pub(crate) fn statement(
    books: &Tables<impl Viewed>,
    account: account::Id,
    until: Date,
) -> Result<Vec<Line>> {
    let mut balance = Money::default();
    let entries = books.entry().by_account_and_day().range_with_account(account, ..=until).query();
    let lines = entries.join(|entry| books.transfer().get(entry.transfer()));
    lines
        .try_map(|(entry, transfer)| {
            let (day, memo, amount) = (entry.day(), transfer.memo().to_owned(), entry.amount());
            balance = balance.plus(amount)?;
            Ok(Line { day, memo, amount, balance })
        })
        .collect()
}

fn touched(changes: impl Iterator<Item = Result<Change>>) -> Result<BTreeSet<transfer::Id>> {
    let mut transfers = BTreeSet::new();
    for change in changes {
        if let Change::Entry(entry) = change? {
            let states = [entry.before, entry.after].into_iter().flatten();
            transfers.extend(states.map(|entry| entry.transfer));
        }
    }
    Ok(transfers)
}

/// Version 2 has the day in each entry.
fn copy_days(tx: &mut db::custom::copy_days::Transaction<'_, '_>) -> Result<()> {
    for id in tx.entry().ids()? {
        let transfer = tx.entry().require(id)?.transfer();
        let day = tx.transfer().require(transfer)?.day();
        tx.edit(id)?.set_day(day)?;
    }
    Ok(())
}
