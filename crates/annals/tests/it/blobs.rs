//! Blobs: written in pieces, read on demand, verified before anything of them is given.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use annals::event::{Event, MAX_PIECE, Script};
use annals::storage::{Access, Directory, MemoryDirectory, SystemClock};
use annals::{
    Blob, BlobReader, Command, Committed, Database, Error, ErrorKind, FieldNumber, Level, Options,
    Reader, Result, RowId, Schema, Sink, TableNumber, Transaction, Type, ValueRef,
};
use annals_simulated::Rng;
use annals_tools::scan_in;

use crate::hostile::memory::peak;

const TABLE: TableNumber = TableNumber(0);
const FIELD: FieldNumber = FieldNumber(0);
const NAME: &str = "db";

fn open(directory: &MemoryDirectory) -> Database {
    let directory: Arc<dyn Directory> = Arc::new(directory.clone());
    Options::new().background(false).open_in(directory, NAME, Arc::new(SystemClock)).unwrap()
}

fn define(tx: &mut Transaction<'_>) -> Result<()> {
    tx.apply_command(&Command::CreateTable { name: "file".to_owned() })?;
    let (name, ty) = ("content".to_owned(), Type::Blob);
    let field = Command::AddField { table: TABLE, name, ty, nullable: true, default: None };
    tx.apply_command(&field)
}

/// A database with a table of blobs.
fn new() -> (MemoryDirectory, Database) {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    database.write(define).unwrap();
    (directory, database)
}

/// Bytes in which no piece equals another.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

fn all(mut reader: BlobReader<'_>) -> Vec<u8> {
    reader.to_vec(usize::MAX).unwrap()
}

#[test]
fn blobs_of_all_lengths_come_back_in_every_way() {
    let (directory, database) = new();
    let lengths = [0, 1, 100, MAX_PIECE - 1, MAX_PIECE, MAX_PIECE + 1, 3 * MAX_PIECE, 2_000_001];
    let contents: Vec<_> = (1..).zip(lengths).map(|(seed, len)| bytes(seed, len)).collect();
    let mut tx = database.begin().unwrap();
    for (number, content) in (1..).zip(&contents) {
        let blob = tx.write_blob(&content[..]).unwrap();
        assert_eq!(blob, Blob(number));
        tx.insert(TABLE, &[blob.into()]).unwrap();
        // Some of its pieces have been written to the file, some are still to be.
        assert_eq!(&all(tx.blob(blob).unwrap()), content, "in its own transaction");
    }
    for (number, content) in (1..).zip(&contents) {
        assert_eq!(&all(tx.blob(Blob(number)).unwrap()), content, "later in it");
    }
    tx.commit().unwrap();
    let check = |snapshot: &annals::Snapshot| {
        snapshot.check().unwrap();
        for (row, content) in snapshot.table(TABLE).unwrap().rows().zip(&contents) {
            let blob = row.unwrap().read::<Option<Blob>>(FIELD).unwrap();
            let mut reader = snapshot.blob(blob).unwrap();
            assert_eq!(
                (reader.len(), reader.is_empty()),
                (content.len() as u64, content.is_empty())
            );
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(&read, content);
            parts(&mut reader, content);
        }
    };
    check(&database.read());
    let before = database.read();
    database.close().unwrap();
    check(&before);
    let reader = Reader::open(&directory, NAME).unwrap();
    check(&reader.read());
    let database = open(&directory);
    drop(reader);
    check(&database.read());
    check(&before);
}

/// Reads parts of a blob at random places, by position and by seeking.
fn parts(reader: &mut BlobReader<'_>, content: &[u8]) {
    let mut rng = Rng::new(content.len() as u64);
    for _ in 0..50 {
        let at = rng.index(content.len() + 10);
        let mut buffer = vec![0; rng.index(200_000)];
        let rest = content.get(at..).unwrap_or_default();
        let expected = &rest[..rest.len().min(buffer.len())];
        let count = reader.read_at(at as u64, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], expected);
        let mut clone = reader.clone();
        clone.seek(SeekFrom::Start(at as u64)).unwrap();
        buffer.truncate(expected.len());
        clone.read_exact(&mut buffer).unwrap();
        assert_eq!(buffer, expected);
    }
    assert_eq!(reader.seek(SeekFrom::End(0)).unwrap(), content.len() as u64);
    assert!(reader.seek(SeekFrom::Current(-(1 << 40))).is_err());
    assert_eq!(reader.read_at(u64::MAX, &mut [0; 9]).unwrap(), 0);
    assert_eq!(reader.seek(SeekFrom::Start(u64::MAX)).unwrap(), u64::MAX);
    assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
    if !content.is_empty() {
        let error = reader.to_vec(content.len() - 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_field_leads_only_to_a_blob_that_was_written() {
    let (directory, database) = new();
    let mut tx = database.begin().unwrap();
    for number in [0, 1, 7, u64::MAX] {
        let error = tx.insert(TABLE, &[Blob(number).into()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(tx.blob(Blob(number)).is_err_and(|error| error.kind() == ErrorKind::NotFound));
    }
    tx.insert(TABLE, &[ValueRef::Null]).unwrap();
    let blob = tx.write_blob(&b"one"[..]).unwrap();
    tx.update(TABLE, RowId(0), FIELD, blob.into()).unwrap();
    let error = tx.update(TABLE, RowId(0), FIELD, Blob(2).into()).unwrap_err();
    assert!(error.to_string().contains("no blob number 2"), "{error}");
    tx.rollback().unwrap();
    // The rollback took the number back, and with it the right to store it.
    let mut tx = database.begin().unwrap();
    assert!(tx.insert(TABLE, &[blob.into()]).is_err());
    assert_eq!(tx.write_blob(&b"another"[..]).unwrap(), blob);
    tx.insert(TABLE, &[blob.into()]).unwrap();
    let before = database.read();
    assert!(before.blob(blob).is_err(), "nothing is committed yet");
    tx.commit().unwrap();
    assert!(before.blob(blob).is_err(), "a snapshot stays as it is");
    drop(database);
    assert_eq!(all(open(&directory).read().blob(blob).unwrap()), b"another");
}

/// Returns some bytes, then fails.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.min(buffer.len());
        if count == 0 {
            return Err(io::Error::other("no more of it"));
        }
        self.0 -= count;
        buffer[..count].fill(7);
        Ok(count)
    }
}

#[test]
fn a_reader_that_fails_leaves_a_transaction_that_goes_on() {
    let (directory, database) = new();
    let mut tx = database.begin().unwrap();
    let error = tx.write_blob(Failing(100)).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("no more of it"));
    assert!(tx.is_empty(), "nothing was written of what didn't fill a piece");
    assert!(tx.append_blob(b"x").is_err(), "nothing is appended to half a blob");
    assert!(tx.write_blob(Failing(MAX_PIECE + 9)).is_err());
    assert!(tx.append_blob(b"x").is_err(), "nor to one that has a piece");
    let blob = tx.write_blob(&b"whole"[..]).unwrap();
    assert_eq!(blob, Blob(2), "the half of one keeps its number, which nobody was given");
    tx.insert(TABLE, &[blob.into()]).unwrap();
    tx.commit().unwrap();
    drop(database);
    let database = open(&directory);
    assert_eq!(all(database.read().blob(blob).unwrap()), b"whole");
    database.read().check().unwrap();
}

#[test]
fn what_is_appended_continues_the_last_blob_of_the_transaction() {
    let (directory, database) = new();
    let mut tx = database.begin().unwrap();
    let invalid = |result: Result<Blob>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    };
    invalid(tx.append_blob(b"to nothing"));
    tx.write_blob(&b""[..]).unwrap();
    invalid(tx.append_blob(b"to an empty one"));
    let blob = tx.write_blob(&b"one, "[..]).unwrap();
    invalid(tx.append_blob(b""));
    tx.insert(TABLE, &[blob.into()]).unwrap();
    assert_eq!(tx.append_blob(b"two, ").unwrap(), blob);
    let long = bytes(1, MAX_PIECE + 5);
    tx.append_blob(&long).unwrap();
    let expected = [b"one, two, ", &long[..]].concat();
    assert_eq!(all(tx.blob(blob).unwrap()), expected);
    tx.commit().unwrap();
    let mut tx = database.begin().unwrap();
    invalid(tx.append_blob(b"in another transaction"));
    drop(tx);
    drop(database);
    assert_eq!(all(open(&directory).read().blob(blob).unwrap()), expected);
}

#[test]
fn a_piece_that_changed_is_never_given() {
    let (directory, database) = new();
    let content = bytes(3, 3 * MAX_PIECE);
    let blob = database.write(|tx| tx.write_blob(&content[..])).unwrap();
    let (snapshot, file) = (database.read(), directory.open(NAME, Access::Write).unwrap());
    let mut journal = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(0, &mut journal).unwrap();
    let place = |piece: usize| {
        let start = &content[piece * MAX_PIECE..][..16];
        journal.windows(16).position(|window| window == start).unwrap()
    };
    // The second piece: one bit of its bytes, one of its checksum, and another piece in its place.
    let (second, third) = (place(1), place(2));
    let mut flipped = journal.clone();
    flipped[second + 777] ^= 1;
    let mut sum = journal.clone();
    sum[second - 1] ^= 1;
    let mut moved = journal.clone();
    moved.copy_within(third - 8..third + MAX_PIECE, second - 8);
    for (what, damaged) in [("a bit", flipped), ("its checksum", sum), ("its place", moved)] {
        file.write_at(0, &damaged).unwrap();
        let mut reader = snapshot.blob(blob).unwrap();
        let mut first = vec![0; MAX_PIECE];
        assert_eq!(reader.read_at(0, &mut first).unwrap(), MAX_PIECE, "{what}");
        assert_eq!(first, content[..MAX_PIECE], "the piece before is whole");
        let error = reader.read_at(MAX_PIECE as u64, &mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        let position = format!("at position {}", second - 8);
        assert!(error.to_string().contains(&position), "{what}: {error}");
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}: {error}");
    }
    file.write_at(0, &journal).unwrap();
    assert_eq!(all(snapshot.blob(blob).unwrap()), content, "what is whole again is given again");
    file.set_len(second as u64 + 10).unwrap();
    assert!(snapshot.blob(blob).unwrap().to_vec(usize::MAX).is_err(), "a file that was cut short");
}

#[test]
fn closing_lets_go_of_the_lock_though_a_snapshot_reads_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blobs.annals");
    for round in 0..2 {
        let database = Database::open(&path).unwrap();
        if round == 0 {
            database.write(define).unwrap();
        }
        let blob = database.write(|tx| tx.write_blob(&b"kept"[..])).unwrap();
        let snapshot = database.read();
        match round {
            0 => database.close().unwrap(),
            _ => drop(database),
        }
        let next = Database::open(&path).unwrap();
        next.write(|tx| tx.write_blob(&b"more"[..])).unwrap();
        assert_eq!(all(snapshot.blob(blob).unwrap()), b"kept");
        assert_eq!(Database::open(&path).unwrap_err().kind(), ErrorKind::Busy);
    }
}

/// Returns so many bytes.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.0).unwrap_or(usize::MAX).min(buffer.len());
        buffer[..count].fill(0);
        self.0 -= count as u64;
        Ok(count)
    }
}

#[test]
fn a_blob_goes_through_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.annals");
    let len = 64 << 20;
    let limit = 6 << 20;
    let options = Options::new().background(false).level(Level::Soft);
    let (_, taken) = peak(|| {
        let database = options.open(&path).unwrap();
        database.write(|tx| tx.write_blob(Zeros(len))).unwrap();
        drop(database);
    });
    assert!(taken < limit, "writing takes {taken} bytes");
    let (database, taken) = peak(|| options.open(&path).unwrap());
    assert!(taken < limit, "opening takes {taken} bytes");
    let (copied, taken) = peak(|| {
        let mut reader = database.read().blob(Blob(1)).unwrap();
        io::copy(&mut reader, &mut io::sink()).unwrap()
    });
    assert_eq!(copied, len);
    assert!(taken < 200_000, "reading takes {taken} bytes");
}

/// Writes a journal's history as the shell's commands.
#[derive(Default)]
pub(crate) struct Log {
    script: Script,
    pub(crate) text: String,
}

impl Sink for Log {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        self.script.push(schema, event, &mut self.text)?;
        self.text.push('\n');
        Ok(())
    }
    fn commit(&mut self, _: &Schema, _: &Committed) -> Result<()> {
        self.text.push_str("--\n");
        Ok(())
    }
}

#[test]
fn the_log_has_a_line_for_each_piece() {
    let (directory, database) = new();
    let write = |tx: &mut Transaction<'_>| -> Result<(), Error> {
        let blob = tx.write_blob("Köln".as_bytes())?;
        tx.append_blob(b"\n")?;
        tx.insert(TABLE, &[blob.into()])?;
        tx.write_blob(&[255, 0][..])?;
        tx.valid_data()
    };
    database.write(write).unwrap();
    database.close().unwrap();
    let mut log = Log::default();
    scan_in(&Options::new(), &directory, NAME, &mut log).unwrap();
    let expected = "create_table file\nadd_field file content blob\n--\nwrite_blob \"Köln\"\n\
        append_blob \"\\n\"\ninsert file blob:1\nwrite_blob 0xff00\nvalid_data\n--\n";
    assert_eq!(log.text, expected);
}
