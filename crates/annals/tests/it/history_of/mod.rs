//! The history of rows: with an index and without one it is what a scan of the whole journal gives.

mod damage;
mod indexed;
mod large;
mod lazily;
mod left_out;
mod oracle;
mod questions;
mod random;

use std::sync::Arc;
use std::time::Duration;

use annals::storage::MemoryDirectory;
use annals::{
    Command, Database, ErrorKind, FieldNumber, History, Moment, Options, Reader, Result, RowId,
    TableNumber, Timestamp, Type, Version,
};
use annals_simulated::SimulatedClock;

use self::oracle::{Dated, Oracle};

const NAME: &str = "db";
const IMAGE: &str = "db-image";
const CITY: TableNumber = TableNumber(0);
const PEOPLE: FieldNumber = FieldNumber(1);

fn options() -> Options {
    Options::new().background(false).lock_timeout(Duration::ZERO)
}

fn open(directory: &MemoryDirectory) -> Database {
    open_with(directory, &options())
}

fn open_with(directory: &MemoryDirectory, options: &Options) -> Database {
    let clock = Arc::new(SimulatedClock::new(7));
    options.open_in(Arc::new(directory.clone()), NAME, clock).unwrap()
}

fn define(database: &Database) {
    database
        .write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "city".to_owned() })?;
            for (name, ty) in [("name", Type::String), ("people", Type::UInt32)] {
                let (name, table) = (name.to_owned(), CITY);
                let (nullable, default) = (true, None);
                tx.apply_command(&Command::AddField { table, name, ty, nullable, default })?;
            }
            Ok(())
        })
        .unwrap();
}

fn collect(history: Result<History>) -> Vec<Version> {
    let history = history.unwrap();
    assert_eq!(history.index_problem(), None);
    history.map(Result::unwrap).collect()
}

/// Compares the history of every row with what a scan gives; returns how many versions there are.
fn compare(directory: &MemoryDirectory, database: &Database) -> usize {
    compare_each(directory, database, 1)
}

/// Does what [`compare`] does, with only one of so many rows.
fn compare_each(directory: &MemoryDirectory, database: &Database, step: usize) -> usize {
    let oracle = Oracle::of(directory, NAME);
    let reader = Reader::open(directory, NAME).unwrap();
    let begins = database.segments().unwrap()[0].begins_with_state;
    let now = database.read();
    let mut versions = 0;
    for (table, id) in oracle.rows(now.schema()).into_iter().step_by(step) {
        let expected = oracle.history(now.schema(), (table, id), begins);
        let found = collect(database.history_of(table, id));
        assert!(
            found == expected,
            "row {} of table {}:\n{found:#?}\nbut a scan gives\n{expected:#?}",
            id.0,
            table.0
        );
        assert!(collect(reader.history_of(table, id)) == expected);
        versions += found.len();
    }
    for table in now.schema().tables() {
        assert_eq!(collect(database.history_of(table.number, RowId(1 << 40))), []);
    }
    moments(&oracle, database);
    let check = annals_tools::check_history_index(&now, true).unwrap();
    assert_eq!(check.and_then(|check| check.problem), None);
    versions
}

/// Compares which transactions moments mean with what a scan gives.
fn moments(oracle: &Oracle, database: &Database) {
    let commits = &oracle.commits;
    let last = |is_it: &dyn Fn(&Dated) -> bool| {
        commits.iter().rfind(|commit| is_it(commit)).map(|commit| commit.0)
    };
    let found = |moment: Moment| match database.txid_of(moment) {
        Ok(txid) => Some(txid.0),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    };
    let begins = database.segments().unwrap()[0].begins_with_state;
    for (txid, time, comments) in commits.iter().step_by(3) {
        assert_eq!(found(Moment::Txid(annals::Txid(*txid))), Some(*txid));
        for time in [*time, Timestamp(time.0 - 1)] {
            let expected = last(&|(_, other, _)| *other <= time).or((!begins).then_some(0));
            assert_eq!(found(Moment::Time(time)), expected, "{time}");
        }
        for comment in comments {
            let expected = last(&|(_, _, others)| others.contains(comment));
            assert_eq!(found(Moment::Comment(comment.clone())), expected, "{comment}");
        }
    }
    assert_eq!(found(Moment::Txid(annals::Txid(0))), Some(0));
    assert_eq!(found(Moment::Txid(annals::Txid(u64::MAX))), None);
    assert_eq!(found(Moment::Comment("nobody wrote this".to_owned())), None);
}

fn has_index(database: &Database) -> bool {
    annals_tools::check_history_index(&database.read(), false).unwrap().is_some()
}
