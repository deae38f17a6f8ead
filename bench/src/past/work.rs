//! The work of `past`, its questions and their right answers: a model that all engines are compared with.
//!
//! Accounts are loaded in one transaction. Each change after that is a transaction of its own, which sets the balance
//! of one account. Changes are numbered from 1; 0 is the load.

use crate::random::Random;

/// A failure of an engine, or a wrong answer.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Every so many changes, the hot row is changed.
const HOT_EVERY: u64 = 100;
/// How often the row with a short history is changed.
const SHORT: u64 = 4;
/// The transactions of a long difference, at most.
const MANY: u64 = 1000;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) balance: i64,
    pub(crate) note: String,
}

impl Account {
    fn new(id: u64, balance: i64) -> Self {
        let note = format!("opened at the branch {}, {}", id % 97, 1950 + id % 75);
        Self { id, name: format!("account {id}"), balance, note }
    }
}

/// A transaction after the load.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) number: u64,
    pub(crate) row: u64,
    pub(crate) balance: i64,
}

impl Change {
    /// Returns the comment of the transaction.
    pub(crate) fn comment(&self) -> String {
        format!("payment {}, a monthly standing order", self.number)
    }
}

/// What is asked about the past. A moment is the number of the last change before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    History { row: u64 },
    Row { row: u64, moment: u64 },
    RowByBalance { balance: i64, moment: u64 },
    FirstRow { moment: u64 },
    Sum { moment: u64 },
    Differences { after: u64, to: u64 },
}

/// A row that differs between two moments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) row: u64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The number of each change of the row, and the balance after it.
    History(Vec<(u64, i64)>),
    Row(Account),
    Sum(i64),
    /// In the order of the rows.
    Differences(Vec<Difference>),
}

/// The rows, and all changes of them.
pub(crate) struct Work {
    rows: u64,
    changes: Vec<Change>,
}

impl Work {
    pub(crate) fn new(rows: u64, changes: u64) -> Result<Self, Failure> {
        if rows < 100 || changes < 100 {
            return Err("at least 100 rows and 100 changes".into());
        }
        let mut work = Self { rows, changes: Vec::new() };
        let mut random = Random::new(rows ^ changes);
        for number in 1..=changes {
            let any = match random.below(rows) {
                row if row == work.hot() || row == work.short() => row + 1,
                row => row,
            };
            let (part, over) = (number / (changes / (SHORT + 1)), number % (changes / (SHORT + 1)));
            let row = match (1..=SHORT).contains(&part) && over == 1 {
                true => work.short(),
                false if number.is_multiple_of(HOT_EVERY) => work.hot(),
                false => any,
            };
            work.changes.push(Change { number, row, balance: balance(rows + number) });
        }
        Ok(work)
    }

    const fn hot(&self) -> u64 {
        self.rows / 3
    }

    const fn short(&self) -> u64 {
        self.rows / 2
    }

    /// Returns the loaded accounts.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = Account> {
        (0..self.rows).map(|id| Account::new(id, balance(id)))
    }

    /// Returns all changes, in their order.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    fn changes_of(&self, row: u64) -> impl DoubleEndedIterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.row == row)
    }

    /// Returns the balance of a row at a moment.
    pub(crate) fn balance_at(&self, row: u64, moment: u64) -> i64 {
        let last = self.changes_of(row).rfind(|change| change.number <= moment);
        last.map_or(balance(row), |change| change.balance)
    }

    /// Returns the changes after the first half whose row isn't changed again.
    pub(crate) fn undoable(&self) -> Vec<Change> {
        let mut seen = std::collections::HashSet::new();
        let later = self.changes.iter().skip(self.changes.len() / 2).rev().copied();
        let mut last: Vec<_> = later.filter(|change| seen.insert(change.row)).collect();
        last.reverse();
        last
    }

    /// Returns a question by its key.
    pub(crate) fn question(&self, key: &str) -> Result<Question, Failure> {
        let moment = self.changes.len() as u64 / 2;
        let row = self.short();
        Ok(match key {
            "hot" => Question::History { row: self.hot() },
            "short" => Question::History { row },
            "row" => Question::Row { row, moment },
            "index" => {
                let balance = self.balance_at(row, moment);
                Question::RowByBalance { balance, moment }
            }
            "first" => Question::FirstRow { moment },
            "sum" => Question::Sum { moment },
            "difference" => Question::Differences { after: moment, to: moment + 1 },
            "differences" => {
                Question::Differences { after: moment, to: moment + MANY.min(moment / 2) }
            }
            _ => return Err(format!("there is no question {key}").into()),
        })
    }

    /// Returns the right answer.
    pub(crate) fn answer(&self, question: &Question) -> Answer {
        match *question {
            Question::History { row } => {
                let changes = self.changes_of(row).map(|change| (change.number, change.balance));
                Answer::History(std::iter::once((0, balance(row))).chain(changes).collect())
            }
            Question::Row { row, moment } => self.account(row, moment),
            Question::RowByBalance { moment, .. } => self.account(self.short(), moment),
            Question::FirstRow { moment } => self.account(0, moment),
            Question::Sum { moment } => Answer::Sum(self.balances(moment).iter().sum()),
            Question::Differences { after, to } => {
                let both = self.balances(after).into_iter().zip(self.balances(to));
                let rows = (0..).zip(both).filter(|(_, (before, after))| before != after);
                let of = |(row, (before, after))| Difference { row, before, after };
                Answer::Differences(rows.map(of).collect())
            }
        }
    }

    fn account(&self, row: u64, moment: u64) -> Answer {
        Answer::Row(Account::new(row, self.balance_at(row, moment)))
    }

    /// Returns the balances of all rows at a moment.
    fn balances(&self, moment: u64) -> Vec<i64> {
        let mut balances: Vec<_> = (0..self.rows).map(balance).collect();
        for change in self.changes.iter().take_while(|change| change.number <= moment) {
            if let Some(balance) =
                usize::try_from(change.row).ok().and_then(|row| balances.get_mut(row))
            {
                *balance = change.balance;
            }
        }
        balances
    }
}

/// Returns the balance of this number: a different one for each below a thousand million.
fn balance(number: u64) -> i64 {
    (number * 611_953 % 1_000_000_007).cast_signed()
}
