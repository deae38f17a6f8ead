//! Small journals, what they hold, and the judge of what opening a changed one gives.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use annals::event::Event;
use annals::model::OnDelete;
use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{
    Blob, Command, Committed, Database, Error, ErrorKind, FieldNumber, IndexNumber, Level, Options,
    Reader, Recovery, RowId, Schema, Sink, Snapshot, TableNumber, Timestamp, Transaction, Type,
    Value, ValueRef, View,
};
use annals_simulated::SimulatedClock;
use annals_tools::{inspect_in, scan_in};

pub(crate) const NAME: &str = "some.annals";

/// A journal, and what it holds after each of its commits.
pub(crate) struct Journal {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// The state before the first commit, after the first, and so on.
    pub(crate) states: Vec<String>,
    /// The same of the log.
    pub(crate) logs: Vec<String>,
    /// Where each commit ends.
    pub(crate) ends: Vec<u64>,
    /// How many commits were known to be on permanent storage.
    pub(crate) durable: usize,
}

/// Writes down a whole state: schema, rows, next ids, the order of each index, and all blobs.
pub(crate) fn dump(view: &Snapshot) -> String {
    let mut text = String::new();
    for command in view.schema().commands() {
        writeln!(text, "{command:?}").unwrap();
    }
    for table in view.schema().tables() {
        let rows = view.table(table.number).unwrap();
        writeln!(text, "{}: {} rows, next {}", table.name, rows.len(), rows.next_id()).unwrap();
        for row in rows.rows() {
            let row = row.unwrap();
            let values: Vec<_> = table.fields.iter().map(|field| row.value(field.number)).collect();
            writeln!(text, "  {:?} {values:?}", row.id()).unwrap();
        }
    }
    for index in view.schema().indexes() {
        let rows = view.index(index.number).unwrap().rows();
        let ids: Vec<_> = rows.map(|row| row.unwrap().id().0).collect();
        writeln!(text, "{}: {ids:?}", index.name).unwrap();
    }
    for number in 1.. {
        let Ok(mut blob) = view.blob(Blob(number)) else { break };
        // A damaged one says what every opening of the file would have said.
        match blob.to_vec(1 << 20) {
            Ok(bytes) => writeln!(text, "blob {number}: {:?}", bytes.escape_ascii().to_string()),
            Err(error) => writeln!(text, "blob {number}: {error}"),
        }
        .unwrap();
    }
    text
}

/// A log that remembers what it was after each commit.
#[derive(Default)]
pub(crate) struct Log {
    text: String,
    pub(crate) after: Vec<String>,
    pub(crate) ends: Vec<u64>,
}

impl Sink for Log {
    fn event(&mut self, _: &Schema, event: &Event<'_>) -> annals::Result<()> {
        writeln!(self.text, "{event:?}").unwrap();
        Ok(())
    }
    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        writeln!(self.text, "{committed:?}").unwrap();
        self.after.push(self.text.clone());
        self.ends.push(committed.position);
        Ok(())
    }
}

pub(crate) const CITY: TableNumber = TableNumber(0);
pub(crate) const PERSON: TableNumber = TableNumber(1);

pub(crate) fn schema() -> Schema {
    let field = |table, name: &str, ty, nullable, default| Command::AddField {
        table,
        name: name.to_owned(),
        ty,
        nullable,
        default,
    };
    let mut schema = Schema::default();
    for command in [
        Command::CreateTable { name: "city".to_owned() },
        field(CITY, "name", Type::String, false, None),
        field(CITY, "people", Type::UInt32, true, Some(Value::UInt32(7))),
        Command::CreateTable { name: "person".to_owned() },
        field(PERSON, "name", Type::String, false, None),
        field(PERSON, "home", Type::Reference(CITY, OnDelete::Dangle), true, None),
        field(PERSON, "score", Type::Float64, true, None),
        Command::CreateIndex {
            name: "city_by_name".to_owned(),
            table: CITY,
            fields: vec![FieldNumber(0)],
            descending: Vec::new(),
            collated: Vec::new(),
            unique: true,
        },
    ] {
        schema.apply(command).unwrap();
    }
    schema
}

/// Makes the changes of one transaction out of nine.
fn change(transaction: &mut Transaction<'_>, number: usize) -> annals::Result<()> {
    let string = ValueRef::String;
    match number {
        0 => {
            let commands = schema();
            commands.commands().iter().try_for_each(|it| transaction.apply_command(it))
        }
        1 => {
            transaction.insert(CITY, &[string("Lille"), ValueRef::UInt32(236_234)])?;
            transaction.insert(CITY, &[string("Köln"), ValueRef::Null]).map(|_| ())
        }
        2 => {
            transaction.set_time(Timestamp(-1));
            let home = ValueRef::Reference(RowId(1));
            let score = ValueRef::Float64(0.5);
            transaction.insert(PERSON, &[string("a name that is not inline"), home, score])?;
            transaction.comment("the first resident")
        }
        3 => {
            transaction.update(CITY, RowId(0), FieldNumber(1), ValueRef::Null)?;
            transaction.insert_at(CITY, RowId(40), &[string("Oulu"), ValueRef::UInt32(1)])
        }
        4 => {
            transaction.timestamp(1_600_000_000)?;
            transaction.delete(CITY, RowId(0))
        }
        5 => {
            transaction.update(PERSON, RowId(0), FieldNumber(1), ValueRef::Reference(RowId(40)))?;
            transaction.insert(PERSON, &[string("x"), ValueRef::Null, ValueRef::Null]).map(|_| ())
        }
        6 => change_schema(transaction),
        7 => {
            let first = transaction.write_blob(&b"a blob of one piece"[..])?;
            transaction.update(CITY, RowId(1), FieldNumber(2), first.into())?;
            let second = transaction.write_blob("Köln".as_bytes())?;
            transaction.append_blob(&[0, 255])?;
            transaction.insert(CITY, &[string("Aachen"), second.into()])?;
            transaction.write_blob(std::io::empty())?;
            transaction.valid_data()
        }
        _ => {
            let id = transaction.insert_vector(PERSON, 20)?;
            let scores: Vec<_> = (0..20u8).map(f64::from).collect();
            transaction.update_vector(PERSON, id, FieldNumber(2), &scores[..])?;
            let homes: Vec<_> = (0..20).map(|n| (n % 3 > 0).then_some(RowId(40))).collect();
            transaction.update_vector(PERSON, id, FieldNumber(1), &homes[..])?;
            let names: Vec<_> = (0..20).map(|n| "n".repeat(n)).collect();
            transaction.update_vector(PERSON, id, FieldNumber(0), &names[..])?;
            transaction.delete_vector(PERSON, RowId(id.0 + 3), 15)
        }
    }
}

/// Applies each command that the first transaction has not.
fn change_schema(transaction: &mut Transaction<'_>) -> annals::Result<()> {
    let (mark, single) = (TableNumber(2), TableNumber(3));
    let named = |name: &str| name.to_owned();
    let field = |table, name, ty| Command::AddField {
        table,
        name: named(name),
        ty,
        nullable: true,
        default: None,
    };
    let index = |name, table, field, unique| {
        let (name, fields) = (named(name), vec![FieldNumber(field)]);
        Command::CreateIndex {
            name,
            table,
            fields,
            descending: Vec::new(),
            collated: Vec::new(),
            unique,
        }
    };
    for command in [
        field(CITY, "photo", Type::Blob),
        Command::DropField { table: CITY, field: FieldNumber(1) },
        Command::RenameField { table: CITY, field: FieldNumber(0), name: named("title") },
        Command::DropIndex { index: IndexNumber(0) },
        index("by_title", CITY, 0, true),
        Command::RenameTable { table: PERSON, name: named("resident") },
        Command::CreateTable { name: named("mark") },
        field(mark, "flag", Type::Bool),
        field(mark, "city", Type::Reference(CITY, OnDelete::Restrict)),
        Command::CreateTable { name: named("setting") },
        field(single, "home", Type::Reference(CITY, OnDelete::SetNull)),
        field(single, "guest", Type::Reference(PERSON, OnDelete::Cascade)),
        Command::SetSingleRow { table: single, single: true },
        Command::Custom { name: named("move_people") },
        Command::DropTable { table: mark },
        index("by_photo", CITY, 2, false),
    ] {
        transaction.apply_command(&command)?;
    }
    Ok(())
}

/// Opens a database in memory without a thread.
pub(crate) fn open(
    directory: &Arc<MemoryDirectory>,
    recovery: Recovery,
    seed: u64,
) -> annals::Result<Database> {
    let options = Options::new().background(false).recovery(recovery);
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    options.open_in(directory, NAME, Arc::new(SimulatedClock::new(seed)))
}

pub(crate) fn content(directory: &dyn Directory) -> Vec<u8> {
    let file = directory.open(NAME, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Returns a directory with one file in it.
pub(crate) fn install(bytes: &[u8]) -> Arc<MemoryDirectory> {
    let directory = MemoryDirectory::new();
    directory.create(NAME).unwrap().write_at(0, bytes).unwrap();
    Arc::new(directory)
}

/// Writes a journal: `levels` are those of its commits, nine at most. It rests after the commit `rest`, which
/// fills space with zeros and advances a slot.
pub(crate) fn write(
    name: &'static str,
    seed: u64,
    levels: &[Level],
    rest: Option<usize>,
    close: bool,
) -> Journal {
    let directory = Arc::new(MemoryDirectory::new());
    let database = open(&directory, Recovery::Checked, seed).unwrap();
    let mut states = vec![dump(&database.read())];
    for (number, &level) in levels.iter().enumerate() {
        let write = database.write(|transaction| {
            transaction.set_level(level);
            change(transaction, number)
        });
        write.unwrap();
        states.push(dump(&database.read()));
        if rest == Some(number) {
            database.rest().unwrap();
        }
    }
    let database = if close { database.close().map(|()| None) } else { Ok(Some(database)) };
    let bytes = content(&*directory);
    drop(database);
    let directory = install(&bytes);
    let mut log = Log::default();
    scan_in(&Options::new(), &*directory, NAME, &mut log).unwrap();
    let inspection = inspect_in(&Options::new(), &*directory, NAME).unwrap();
    assert_eq!(inspection.is_closed(), close, "{name}");
    let durable = log.ends.iter().filter(|&&end| end <= inspection.hard).count();
    let mut logs = vec![String::new()];
    logs.extend(log.after);
    assert_eq!(logs.len(), states.len());
    Journal { name, bytes, states, logs, ends: log.ends, durable }
}

/// The journals that are damaged: closed or not, space filled ahead or not, both levels.
pub(crate) fn journals() -> Vec<Journal> {
    use Level::{Checksummed as C, Soft as S};
    vec![
        write("closed", 1, &[C, C, S, C, S, S], Some(2), true),
        write("unclean with zeros", 2, &[C, S, C, S, C, C], Some(3), false),
        write("unclean and soft", 3, &[C, C, S, S, S, S], None, false),
        write("unclean, only soft", 4, &[S, S, S, S, S, S], None, false),
        write("all events", 5, &[C, S, C, S, C, S, C, C, C], Some(4), true),
    ]
}

/// What may be the matter with a changed journal.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    /// How many commits must be there, if it opens.
    pub(crate) least: usize,
    /// True if commits may be missing without a word: the file looks as if they never were.
    pub(crate) silent: bool,
}

/// Opens a changed journal in every way; panics unless each gives an error, or the right data.
/// Returns whether opening it for writing worked.
pub(crate) fn judge(journal: &Journal, bytes: &[u8], tolerance: Tolerance, what: &str) -> bool {
    let judged = catch_unwind(AssertUnwindSafe(|| try_judge(journal, bytes, tolerance)));
    match judged {
        Ok(Ok(opened)) => opened,
        Ok(Err(wrong)) => panic!("journal {:?}, {what}: {wrong}", journal.name),
        Err(_) => panic!("journal {:?}, {what}: panicked", journal.name),
    }
}

fn try_judge(journal: &Journal, bytes: &[u8], tolerance: Tolerance) -> Result<bool, String> {
    let all = journal.states.len() - 1;
    let place = |state: &str, of: &[String], how: &str| {
        let found = of.iter().rposition(|known| known == state);
        let found = found.ok_or_else(|| format!("{how} gives wrong data:\n{state}"))?;
        if found < tolerance.least {
            return Err(format!("{how} gives {found} commits, {} were safe", tolerance.least));
        }
        Ok(found)
    };

    let directory = install(bytes);
    match Reader::open(&*directory, NAME) {
        Ok(reader) => drop(place(&dump(&reader.read()), &journal.states, "reading only")?),
        Err(error) => helpful(&error)?,
    }
    let mut log = Log::default();
    match scan_in(&Options::new(), &*directory, NAME, &mut log) {
        Ok(()) => drop(place(&log.text, &journal.logs, "scanning")?),
        Err(error) => helpful(&error)?,
    }
    match inspect_in(&Options::new(), &*directory, NAME) {
        Ok(inspection) => match inspection.damage {
            Some(damage) => helpful(&Error::corrupt(damage))?,
            None if inspection.end.txid < annals::Txid(tolerance.least as u64) => {
                return Err("inspecting finds too few commits".to_owned());
            }
            None => {}
        },
        Err(error) => helpful(&error)?,
    }
    if content(&*directory) != bytes {
        return Err("reading only changed the file".to_owned());
    }

    match open(&directory, Recovery::Refuse, 5) {
        Ok(database) => {
            let found = place(&dump(&database.read()), &journal.states, "refusing")?;
            if found < all && !tolerance.silent {
                return Err(format!("Refuse opens {found} of {all} commits"));
            }
        }
        Err(error) => {
            helpful(&error)?;
            if content(&*directory) != bytes {
                return Err("refusing changed the file".to_owned());
            }
        }
    }
    let directory = install(bytes);
    let database = match open(&directory, Recovery::Checked, 5) {
        Err(error) => {
            helpful(&error)?;
            if content(&*directory) != bytes {
                return Err("refusing changed the file".to_owned());
            }
            return Ok(false);
        }
        Ok(database) => database,
    };
    let found = place(&dump(&database.read()), &journal.states, "opening")?;
    let recovered = database.recovered();
    if found < all
        && !tolerance.silent
        && (recovered.cut.is_none() || recovered.findings.is_empty())
    {
        return Err(format!("{} commits are gone without a word", all - found));
    }
    go_on(&directory, database).map(|()| true)
}

/// Writes one more transaction, closes and opens: it must be there, and all be in order.
fn go_on(directory: &Arc<MemoryDirectory>, database: Database) -> Result<(), String> {
    let fail = |error: Error| format!("writing on fails: {error}");
    let text = |error: Error| error.to_string();
    let added = Command::CreateTable { name: "added".to_owned() };
    database.write(|transaction| transaction.apply_command(&added)).map_err(fail)?;
    let before = dump(&database.read());
    database.close().map_err(text)?;
    let database = open(directory, Recovery::Refuse, 6).map_err(text)?;
    if database.recovered().unclean || dump(&database.read()) != before {
        return Err("what was written on isn't there after closing".to_owned());
    }
    Ok(())
}

/// Returns whether an error is of a kind that a bad file gives, names the file, and says what to do.
pub(crate) fn helpful(error: &Error) -> Result<(), String> {
    let kinds = [
        ErrorKind::Corrupt,
        ErrorKind::NotAJournal,
        ErrorKind::Unsupported,
        ErrorKind::NeedsRecovery,
    ];
    let text = error.to_string();
    let advice = ["restore", "newer", "remove", "open it", "copy it", "check the path"];
    let good = kinds.contains(&error.kind())
        && text.contains(NAME)
        && advice.iter().any(|words| text.contains(words));
    if good { Ok(()) } else { Err(format!("an error that doesn't help: {error:?}")) }
}

/// Returns whether everything should be tried.
pub(crate) fn thorough() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Looks a city up by its name, as a reader would.
pub(crate) fn city_named(view: &View, name: &str) -> Option<RowId> {
    let mut rows = view.index(IndexNumber(0)).unwrap().equal(&[ValueRef::String(name)]);
    rows.next().map(|row| row.unwrap().id())
}
