//! The journal at the end of `docs/format.md`: the library writes it byte for byte, and reads it.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use std::fmt::Write as _;
use std::sync::Arc;

use annals_schema::{
    Blob, Command, FieldNumber, IndexNumber, OnDelete, RowId, Schema, TableNumber, Type, Value,
    ValueRef,
};

use crate::format::{
    HEADER_LEN, Header, LIVE_AT, LIVE_COPY_AT, LIVE_LEN, Live, SLOT_AT, SLOT_COPY_AT, SLOT_LEN,
    Slot,
};
use crate::frame::{Making, Trailer};
use crate::survey::{Rule, Survey};
use crate::verdict::Verdict;
use crate::{Checkpoints, Level, Writer, create, frame, head};
use annals_event::testing::{Owned, decoded};
use annals_event::{Encoder, Event, Vector};
use annals_simulated::SimulatedClock;
use annals_simulated::document::{block, dump, parse_dump};
use annals_storage::{Access, Clock, Directory, MemoryDirectory, Storage};

/// Something that writes a journal without a store.
struct Script {
    checkpoints: Arc<Checkpoints>,
    writer: Writer,
    schema: Schema,
}

impl Script {
    fn commit(&mut self, level: Level, time: Option<i64>) {
        let point = self.writer.commit(level, time).unwrap();
        self.checkpoints.reach(level, point).unwrap();
        self.checkpoints.acknowledge(point, 1, level.flushes());
    }

    fn event(&mut self, event: &Event<'_>) {
        self.writer.event(&self.schema, event).unwrap();
        if let Event::Schema(command) = event {
            self.schema.apply((*command).clone()).unwrap();
        }
    }

    fn field(&mut self, name: &str, ty: Type, nullable: bool, default: Option<Value>) {
        let (table, name) = (TableNumber(0), name.to_owned());
        self.event(&Event::Schema(&Command::AddField { table, name, ty, nullable, default }));
    }

    fn update(&mut self, id: u64, field: u32, value: ValueRef<'_>) {
        let (table, id, field) = (TableNumber(0), RowId(id), FieldNumber(field));
        self.event(&Event::Update { table, id, field, value });
    }
}

fn index_by_name(table: TableNumber) -> Command {
    Command::CreateIndex {
        name: "by_name".to_owned(),
        table,
        fields: vec![FieldNumber(0), FieldNumber(1)],
        descending: Vec::new(),
        collated: Vec::new(),
        unique: true,
    }
}

/// Writes the journal of the document: each event, each level, both sorts of time, with padding and
/// without.
fn write_journal() -> Vec<u8> {
    let directory = MemoryDirectory::new();
    let clock = Arc::new(SimulatedClock::new(1));
    let storage = create(&directory, "vector", &*clock).unwrap().unwrap();
    let survey = Survey::make(&*storage, "vector", Rule::default(), |_, _| Ok(())).unwrap();
    let checkpoints = Checkpoints::new(
        Arc::clone(&storage),
        "vector",
        survey.head.hash,
        4711,
        survey.end,
        &crate::Settled::new_journal(survey.end, survey.secret().unwrap()),
    );
    let checkpoints = Arc::new(checkpoints);
    let writer = |sector| {
        let clock = Arc::clone(&clock) as Arc<dyn Clock>;
        Writer::new(Arc::clone(&checkpoints), clock, i64::MIN, sector)
    };
    let mut script = Script {
        checkpoints: Arc::clone(&checkpoints),
        writer: writer(8),
        schema: Schema::default(),
    };
    let table = TableNumber(0);

    script.writer.begin(Level::Checksummed).unwrap();
    script.event(&Event::Schema(&Command::CreateTable { name: "city".to_owned() }));
    script.field("name", Type::String, false, None);
    script.field("people", Type::UInt32, true, Some(Value::UInt32(300)));
    script.field("twin", Type::Reference(table, OnDelete::Dangle), true, None);
    script.field("height", Type::Float64, true, Some(Value::Null));
    script.event(&Event::Schema(&index_by_name(table)));
    script.commit(Level::Checksummed, None);

    script.writer.begin(Level::Checksummed).unwrap();
    let lille =
        [ValueRef::String("Lille"), ValueRef::UInt32(236_234), ValueRef::Null, ValueRef::Null];
    script.event(&Event::Insert { table, id: RowId(7), values: &lille });
    let koeln = [
        ValueRef::String("Köln"),
        ValueRef::Null,
        ValueRef::Reference(RowId(7)),
        ValueRef::Float64(53.0),
    ];
    script.event(&Event::Insert { table, id: RowId(8), values: &koeln });
    script.event(&Event::Comment("twins since 1958"));
    script.commit(Level::Soft, Some(-375_000_000_000_000));

    script.writer.begin(Level::Checksummed).unwrap();
    script.update(7, 2, ValueRef::Reference(RowId(8)));
    script.update(7, 3, ValueRef::Float64(-0.5));
    script.update(7, 3, ValueRef::Null);
    script.update(8, 1, ValueRef::Null);
    script.event(&Event::Delete { table, id: RowId(8) });
    script.event(&Event::Timestamp(1_600_000_000));
    script.commit(Level::Checksummed, None);
    write_schema_changes(&mut script);
    write_vectors_and_blobs(&mut script);
    for (level, sector) in [(Level::TwoPhase, 8), (Level::Half, 512)] {
        script.writer = writer(sector);
        script.writer.begin(level).unwrap();
        script.event(&Event::Comment(level.name()));
        script.commit(level, None);
    }
    checkpoints.close().unwrap();
    content(&*storage)
}

/// Every kind of change to created items.
fn write_schema_changes(script: &mut Script) {
    let (city, mark) = (TableNumber(0), TableNumber(1));
    script.writer.begin(Level::Checksummed).unwrap();
    script.event(&Event::Schema(&Command::CreateTable { name: "mark".to_owned() }));
    let (name, ty) = ("city".to_owned(), Type::Reference(city, OnDelete::Cascade));
    let field = Command::AddField { table: mark, name, ty, nullable: true, default: None };
    let name = "town".to_owned();
    for command in [
        field,
        Command::SetSingleRow { table: mark, single: true },
        Command::DropIndex { index: IndexNumber(0) },
        Command::DropField { table: city, field: FieldNumber(2) },
        Command::RenameField { table: city, field: FieldNumber(1), name: "heads".to_owned() },
        Command::RenameTable { table: city, name },
        Command::Custom { name: "count_heads".to_owned() },
        Command::DropTable { table: mark },
    ] {
        script.event(&Event::Schema(&command));
    }
    script.field("photo", Type::Blob, true, None);
    script.event(&Event::ValidData);
    script.commit(Level::Checksummed, None);
}

fn write_vectors_and_blobs(script: &mut Script) {
    let (table, id, blob) = (TableNumber(0), RowId(9), Blob(1));
    script.writer.begin(Level::Checksummed).unwrap();
    script.event(&Event::InsertVector { table, id, count: 3 });
    let cells: Vec<u8> = [70_000u32, 1, 2].into_iter().flat_map(u32::to_le_bytes).collect();
    let heads = [ValueRef::UInt32(300), ValueRef::Null, ValueRef::UInt32(3)];
    for values in [Vector::Cells(&cells), Vector::Values(&heads)] {
        script.event(&Event::UpdateVector { table, id, field: FieldNumber(1), values });
    }
    let names = ["Aa", "", "Y"].map(ValueRef::String);
    let (field, values) = (FieldNumber(0), Vector::Values(&names));
    script.event(&Event::UpdateVector { table, id, field, values });
    for (offset, bytes) in [(0, &b"half a"[..]), (6, b" photo")] {
        script.event(&Event::Blob { blob, offset, bytes, position: 0 });
    }
    script.update(11, 4, ValueRef::Blob(blob));
    script.event(&Event::DeleteVector { table, id, count: 2 });
    script.commit(Level::Checksummed, None);
}

/// Returns the hash of the header, and the secret in the slots.
fn secrets(storage: &dyn Storage) -> (u64, crate::format::Secret) {
    let head = crate::Head::read(storage, "vector").unwrap();
    (head.hash, head.newest_slot().unwrap().secret)
}

fn content(storage: &dyn Storage) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Reads a journal and prints its contents.
fn transcript(bytes: &[u8]) -> String {
    let directory = MemoryDirectory::new();
    directory.create("vector").unwrap().write_at(0, bytes).unwrap();
    let storage = directory.open("vector", Access::Read).unwrap();
    let (mut text, mut schema) = (String::new(), Schema::default());
    let (segment, secret) = secrets(&*storage);
    let survey = Survey::make(&*storage, "vector", Rule::default(), |frame, _| {
        let header = &frame.header;
        let at = header.position;
        let kind = if header.is_commit() { "commit" } else { "data" };
        writeln!(text, "{at}: {kind} frame of transaction {}", header.txid).unwrap();
        let before = schema.clone();
        let events = decoded(frame.payload, frame.payload_at(), &mut schema)?;
        events.iter().for_each(|event| writeln!(text, "  {event:?}").unwrap());
        let level = Level::of_code(header.level).unwrap().name();
        let explicit = if header.has_explicit_time() { ", explicit" } else { "" };
        writeln!(text, "  {level}, time {}{explicit}, chain {:016x}", header.time, frame.chain)
            .unwrap();
        // Encoding gives the same frame again.
        let mut again = vec![0; crate::format::FRAME_HEADER_LEN];
        let (mut schema, mut encoder) = (before, Encoder::default());
        for event in &events {
            event.encode(&mut encoder, &schema, &mut again);
            if let Owned::Schema(command) = event {
                schema.apply(command.clone()).unwrap();
            }
        }
        if frame.end.is_multiple_of(512) {
            let missing = header.length as usize + crate::format::FRAME_HEADER_LEN - again.len();
            annals_event::pad(missing, &mut again);
        }
        let making = Making { segment, previous: frame.previous, secret: &secret };
        assert_eq!(frame::finish(&mut again, header, making), frame.chain);
        let claim = Trailer::of(frame.bytes).unwrap().claim(header, &secret).unwrap();
        writeln!(text, "  proves that it was flushed up to {claim}").unwrap();
        let range = usize::try_from(at).unwrap()..usize::try_from(frame.end).unwrap();
        assert_eq!(again, bytes[range], "the frame at {at}");
        Ok(())
    });
    let survey = survey.unwrap();
    assert!(survey.verdict() == Verdict::Whole && survey.is_closed());
    writeln!(text, "{}: end", survey.end.position).unwrap();
    text
}

fn part<const N: usize>(bytes: &[u8], at: u64) -> [u8; N] {
    let at = usize::try_from(at).unwrap();
    bytes[at..at + N].try_into().unwrap()
}

#[test]
fn the_documented_journal_is_what_is_written() {
    let (written, documented) = (dump(&write_journal()), block("hex journal"));
    assert!(written == documented, "the library writes:\n{written}");
}

#[test]
fn the_documented_journal_can_be_read() {
    let bytes = parse_dump(block("hex journal"));
    let (read, documented) = (transcript(&bytes), block("text transcript"));
    assert!(read == documented, "the library reads:\n{read}");
}

#[test]
fn the_documented_head_comes_out_again() {
    let bytes = parse_dump(block("hex journal"));
    let header = Header::decode(&part::<HEADER_LEN>(&bytes, 0)).unwrap();
    assert_eq!(header.encode(), part::<HEADER_LEN>(&bytes, 0));
    assert_eq!((header.version, header.segment, header.first_txid), (1, 0, 1));
    for block in SLOT_AT {
        assert_eq!(header.encode(), part::<HEADER_LEN>(&bytes, block));
        for copy in SLOT_COPY_AT {
            let found = part::<SLOT_LEN>(&bytes, block + copy);
            let slot = Slot::decode(&found, header.hash()).unwrap();
            assert_eq!(slot.encode(header.hash()), found);
        }
    }
    for copy in LIVE_COPY_AT {
        let found = part::<LIVE_LEN>(&bytes, LIVE_AT + copy);
        let live = Live::decode(&found).unwrap();
        assert_eq!(live.encode(), found);
        assert_eq!((live.pid, live.suspect), (0, false));
    }
    // All else in the head is zeros.
    let mut fresh = head::new_head(&header, [0; 16]);
    for (place, byte) in fresh.iter_mut().enumerate() {
        let place = place as u64;
        let is_in = |at: u64, len: usize| (at..at + len as u64).contains(&place);
        let mut slots = SLOT_AT.iter().flat_map(|block| SLOT_COPY_AT.map(|copy| block + copy));
        let mut lives = LIVE_COPY_AT.iter().map(|copy| LIVE_AT + copy);
        if slots.any(|at| is_in(at, SLOT_LEN)) || lives.any(|at| is_in(at, LIVE_LEN)) {
            *byte = bytes[usize::try_from(place).unwrap()];
        }
    }
    assert_eq!(fresh, bytes[..fresh.len()]);
}
