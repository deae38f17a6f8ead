//! A database with a history, a place that serves its files by ranges, and questions.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::{
    BackfillMode, Command, Database, Error, ErrorKind, FieldNumber, IndexNumber, Level, Options,
    Reader, Result, RowId, TableNumber, Txid, ValueRef,
};
use annals_replica::lazy::{Contents, Object, Piece};
use annals_replica::{Fetching, Lazy, Patience, Ranges};
use annals_storage::simulated::Rng;

const PERSON: TableNumber = TableNumber(0);
const CITY: TableNumber = TableNumber(1);
const NAME: FieldNumber = FieldNumber(0);
const AGE: FieldNumber = FieldNumber(1);
const NOTE: FieldNumber = FieldNumber(2);
const BY_NAME: IndexNumber = IndexNumber(0);
const BY_AGE: IndexNumber = IndexNumber(1);
const SCHEMA: &str = "create_table person; create_table city; add_field person name string; \
    add_field person age int32; add_field person note string; add_field city name string; \
    create_unique_index by_name person name; create_index by_age person age";

/// A row whose history is long.
const BUSY: RowId = RowId(777);

/// Applies the commands of a schema.
fn define(database: &Database) {
    for command in SCHEMA.split("; ") {
        let schema = database.read().schema().clone();
        let tokens = annals_schema::tokenize(command).expect("words");
        let parsed: Command = annals_schema::parse_command(&schema, &tokens).expect("a command").expect("one");
        database.write(|tx| tx.apply_command(&parsed)).expect("a schema");
    }
}

/// Makes a database without rows.
pub(crate) fn define_again(path: &Path) {
    let database = Options::new().open(path).expect("a database");
    define(&database);
    database.close().expect("a file");
}

/// Makes a database of so many persons, with changes, an image, and transactions after that.
pub(crate) fn create(path: &Path, persons: u64) -> Database {
    let options = Options::new().level(Level::Soft).background(false);
    let database = options.open(path).expect("a database");
    define(&database);
    let mut rng = Rng::new(1);
    for city in ["Lille", "Lyon", "Nantes", "Paris"] {
        database.write(|tx| tx.insert(CITY, &[ValueRef::String(city)]).map(drop)).expect("a city");
    }
    for begin in (0..persons).step_by(10_000) {
        let insert = |tx: &mut annals::Transaction<'_>| {
            for id in begin..persons.min(begin + 10_000) {
                let note = format!("{:016x}{:016x}{:016x}", rng.number(), rng.number(), rng.number());
                tx.insert(PERSON, &[
                    ValueRef::String(&format!("person {id:07}")),
                    ValueRef::Int32(i32::try_from(rng.below(100)).expect("an age")),
                    ValueRef::String(&note),
                ])?;
            }
            Ok(())
        };
        let mut insert = insert;
        database.write(|tx| insert(tx)).expect("persons");
    }
    for change in 0..300 {
        if change % 100 == 50 {
            database.backfill(BackfillMode::Full).expect("a root");
        }
        touch(&database, &mut rng, persons);
    }
    database.backfill(BackfillMode::Full).expect("a root");
    for _ in 0..20 {
        touch(&database, &mut rng, persons);
    }
    database.hard_checkpoint().expect("a flush");
    database
}

/// Changes a few rows.
pub(crate) fn touch(database: &Database, rng: &mut Rng, persons: u64) {
    let mut change = |tx: &mut annals::Transaction<'_>| {
        let row = RowId(rng.below(persons));
        let age = i32::try_from(rng.below(100)).expect("an age");
        tx.update(PERSON, row, AGE, ValueRef::Int32(age))?;
        tx.update(PERSON, BUSY, NOTE, ValueRef::String(&format!("note {}", rng.number())))
    };
    database.write(|tx| change(tx)).expect("a change");
}

/// A question, with its name.
pub(crate) type Question = (&'static str, fn(&Reader) -> Result<String>);

/// What people ask.
pub(crate) const QUESTIONS: [Question; 10] = [
    ("a row", |reader| {
        let now = reader.read();
        let row = now.table(PERSON)?.get(RowId(4321))?;
        Ok(format!("{:?} {:?} {:?}", row.value(NAME), row.value(AGE), row.value(NOTE)))
    }),
    ("an index lookup", |reader| {
        let now = reader.read();
        let found = now.index(BY_NAME)?.require(&[ValueRef::String("person 0001234")])?;
        Ok(format!("{} {:?}", found.id().0, found.value(NOTE)))
    }),
    ("a range", |reader| {
        let now = reader.read();
        let (from, to) = (ValueRef::String("person 0001000"), ValueRef::String("person 0001020"));
        let rows = now.index(BY_NAME)?.range(&[], Bound::Included(from), Bound::Excluded(to));
        let names: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(names?.join(" "))
    }),
    ("a count", |reader| {
        let now = reader.read();
        Ok(now.index(BY_AGE)?.equal(&[ValueRef::Int32(42)]).left()?.to_string())
    }),
    ("the history of a row", |reader| {
        let versions: Vec<_> = reader.history_of(PERSON, BUSY)?.newest(10)?;
        Ok(format!("{versions:?}"))
    }),
    ("blame", |reader| Ok(format!("{:?}", reader.blame(PERSON, BUSY)?))),
    ("a row at a moment", |reader| {
        let then = reader.at(Txid(reader.read().txid().0 - 25))?;
        Ok(format!("{:?}", then.table(PERSON)?.get(BUSY)?.value(NOTE)))
    }),
    ("the difference of near moments", |reader| {
        let end = reader.read().txid().0;
        Ok(format!("{:?}", reader.read().differences(Txid(end - 40), Txid(end - 30))?))
    }),
    ("the first rows", |reader| {
        let now = reader.read();
        let rows = now.table(PERSON)?.rows().take(20);
        let rows: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(rows?.join(" "))
    }),
    ("a small table", |reader| {
        let now = reader.read();
        let rows = now.table(CITY)?.rows();
        let rows: Result<Vec<_>> = rows.map(|row| Ok(format!("{:?}", row?.value(NAME)))).collect();
        Ok(rows?.join(" "))
    }),
];

/// Files in a folder that are read by ranges, as a web server sends them; and its faults.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Part of each tag, as the time of a change is.
    pub(crate) edition: AtomicU64,
    /// So many further answers are cut off.
    pub(crate) cuts: AtomicU64,
    /// A byte that is flipped on the way: in which file, where, and how often.
    pub(crate) flip: Mutex<Option<(&'static str, u64, u64)>>,
    /// True if nothing answers.
    pub(crate) is_down: AtomicBool,
    /// True if it has no tags.
    pub(crate) is_untagged: AtomicBool,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            edition: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            flip: Mutex::default(),
            is_down: AtomicBool::new(false),
            is_untagged: AtomicBool::new(false),
        })
    }

    fn find(&self, suffix: &str) -> Option<Object> {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        let len = std::fs::metadata(&path).ok()?.len();
        let edition = self.edition.load(Ordering::SeqCst);
        let is_tagged = !self.is_untagged.load(Ordering::SeqCst);
        let tag = is_tagged.then(|| format!("{edition} {len}"));
        Some(Object { path: path.into_string().expect("a path"), len, tag })
    }

    fn answer(&self) -> Result<()> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unreachable, "nobody answers")),
            false => Ok(()),
        }
    }
}

impl Ranges for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn look(&self) -> Result<Contents> {
        self.answer()?;
        let newest = self.find("").ok_or_else(|| Error::new(ErrorKind::NotFound, "no journal"))?;
        Ok(Contents { image: self.find("-image"), newest, kept: BTreeMap::new(), end: None })
    }

    fn kept(&self, number: u64) -> Result<Option<Object>> {
        self.answer()?;
        Ok(self.find(&format!("-segment-{number:06}")))
    }

    fn read(&self, object: &Object, range: Range<u64>) -> Result<Piece> {
        self.answer()?;
        let suffix = object.path.strip_prefix(&self.place()).expect("a file beside it");
        let now = self.find(suffix);
        if object.tag.is_some() && now.and_then(|now| now.tag) != object.tag {
            return Ok(Piece::Replaced);
        }
        let all = std::fs::read(&object.path).expect("a file");
        let (from, to) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        let Some(bytes) = all.get(from..to) else { return Ok(Piece::Replaced) };
        let mut bytes = bytes.to_vec();
        let mut flip = self.flip.lock().unwrap();
        if let Some((of, at, left)) = &mut *flip
            && *of == suffix
            && *left > 0
            && range.contains(at)
        {
            bytes[usize::try_from(*at - range.start).unwrap()] ^= 4;
            *left -= 1;
        }
        if self.cuts.load(Ordering::SeqCst) > 0 {
            self.cuts.fetch_sub(1, Ordering::SeqCst);
            bytes.truncate(bytes.len() / 2);
        }
        Ok(Piece::Bytes(bytes))
    }
}

/// A patience that a test can wait for.
pub(crate) fn short() -> Fetching {
    let patience =
        Patience { deadline: Duration::from_millis(50), pause: Duration::from_millis(1) };
    Fetching { patience, ..Fetching::default() }
}

/// Opens a lazy replica that keeps nothing on disk.
pub(crate) fn open(ranges: &Arc<Folder>) -> Result<Lazy> {
    Lazy::in_memory(Arc::clone(ranges) as Arc<dyn Ranges>, &Options::new(), short())
}

/// Returns the answers of a file here.
pub(crate) fn answers(path: &Path) -> Vec<String> {
    let reader = Options::new().open_read_only(path).expect("a database");
    QUESTIONS.iter().map(|(name, ask)| ask(&reader).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}
