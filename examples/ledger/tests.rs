//! The ledger against a model: a map from transfers to their entries.

use std::collections::BTreeMap;
use std::path::Path;

use annals::{Date, ErrorKind, Txid};

use crate::Result;
use crate::books::{self, Ledger, Money};
use crate::db::{Snapshot, account, transfer};

#[test]
fn version_1_is_upgraded() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger.annals");
    crate::write_version_1(&path)?;
    for _ in 0..2 {
        let ledger = Ledger::open(&path)?;
        let now = ledger.now();
        let bank = now.account().by_name().require("bank")?.id();
        let lines = books::statement(&now, bank, "2026-01-31".parse()?)?;
        let lines: Vec<_> = lines.iter().map(|line| (line.memo.as_str(), line.balance)).collect();
        assert_eq!(
            lines,
            [("two chairs", "180.00".parse()?), ("an oak table", "1380.00".parse()?)]
        );
        assert_eq!(books::balance(&now, bank, "2026-01-29".parse()?)?.to_string(), "180.00");
        ledger.close()?;
    }
    Ok(())
}

#[test]
fn what_does_not_sum_to_zero_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::open(folder.path().join("ledger.annals"))?;
    let (a, b) = (ledger.open_account("a")?, ledger.open_account("b")?);
    let before = ledger.now().txid();
    let refused =
        ledger.transfer(day(1), "", &[(a, Money::from_units(5)), (b, Money::from_units(-4))]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(ledger.open_account("a").unwrap_err().kind(), ErrorKind::Unique);
    assert_eq!(ledger.now().txid(), before);
    Ok(())
}

#[test]
fn random_transfers_against_the_model() -> Result<()> {
    for seed in 1..=8 {
        let folder = tempfile::tempdir()?;
        Run::new(&folder.path().join("ledger.annals"), seed)?.run(50)?;
    }
    Ok(())
}

type Entries = Vec<(account::Id, Money)>;

#[derive(Clone, Default)]
struct Model {
    accounts: Vec<account::Id>,
    transfers: BTreeMap<transfer::Id, (usize, Entries)>,
}

impl Model {
    fn balance(&self, account: account::Id, until: usize) -> Money {
        let booked = self.transfers.values().filter(|(day, _)| *day <= until);
        let amounts = booked.flat_map(|(_, entries)| entries).filter(|(of, _)| *of == account);
        amounts.fold(Money::default(), |sum, (_, amount)| sum.checked_add(*amount).unwrap())
    }

    fn check(&self, books: &Snapshot) -> Result<()> {
        assert_eq!(books.account().len(), self.accounts.len() as u64);
        assert_eq!(books.transfer().len(), self.transfers.len() as u64);
        for &account in &self.accounts {
            for until in [1, 9, 28] {
                let expected = self.balance(account, until);
                assert_eq!(books::balance(books, account, day(until))?, expected);
                let lines = books::statement(books, account, day(until))?;
                assert!(lines.is_sorted_by_key(|line| line.day));
                assert_eq!(lines.last().map_or(Money::default(), |line| line.balance), expected);
            }
        }
        Ok(())
    }
}

struct Run<'a> {
    path: &'a Path,
    ledger: Ledger,
    model: Model,
    past: Vec<(u64, Model)>,
    random: u64,
}

impl<'a> Run<'a> {
    fn new(path: &'a Path, seed: u64) -> Result<Self> {
        let (model, past) = Default::default();
        Ok(Self {
            path,
            ledger: Ledger::open(path)?,
            model,
            past,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        })
    }

    fn run(mut self, steps: u32) -> Result<()> {
        for _ in 0..steps {
            if self.below(10) == 0 {
                self = self.reopen()?;
            }
            self.step().map_err(|error| format!("{error}; state {}", self.random))?;
            self.past.push((self.ledger.now().txid().0, self.model.clone()));
        }
        self.model.check(&self.ledger.now())?;
        for (txid, model) in self.past.iter().step_by(7) {
            let then = self.ledger.at(Txid(*txid))?;
            model.check(&then)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let accounts = self.model.accounts.len();
        match self.below(8) {
            0 | 1 => {
                let name = format!("account {accounts}");
                self.model.accounts.push(self.ledger.open_account(&name)?);
            }
            2 => {
                let some = self.below(self.model.transfers.len() + 1);
                if let Some(&transfer) = self.model.transfers.keys().nth(some) {
                    self.ledger.cancel(transfer, "a mistake")?;
                    self.model.transfers.remove(&transfer);
                }
            }
            _ if accounts > 0 => self.transfer()?,
            _ => {}
        }
        Ok(())
    }

    /// Books a transfer; one in eight has a cent too many, and must be refused.
    fn transfer(&mut self) -> Result<()> {
        let mut rest = i128::from(self.below(8) == 0);
        let uneven = rest != 0;
        let mut entries = Vec::new();
        for _ in 0..self.below(3) {
            let cents = self.below(100_000) as i128 - 50_000;
            entries.push((self.account(), Money::from_units(cents)));
            rest -= cents;
        }
        entries.push((self.account(), Money::from_units(rest)));
        let on = self.below(28) + 1;
        match self.ledger.transfer(day(on), "random", &entries) {
            Err(error) if uneven => assert_eq!(error.kind(), ErrorKind::Refused),
            booked => {
                assert!(!uneven);
                self.model.transfers.insert(booked?, (on, entries));
            }
        }
        Ok(())
    }

    fn reopen(self) -> Result<Self> {
        self.ledger.close()?;
        let ledger = Ledger::open(self.path)?;
        self.model.check(&ledger.now())?;
        Ok(Self { ledger, ..self })
    }

    fn account(&mut self) -> account::Id {
        let number = self.below(self.model.accounts.len());
        self.model.accounts[number]
    }

    /// A number below `bound` from a xorshift generator.
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % bound as u64).expect("it is below a usize")
    }
}

fn day(day: usize) -> Date {
    format!("2026-01-{day:02}").parse().unwrap()
}
