//! Journals that were made to do harm: all their checksums are right, what they say is not.

use std::hash::Hasher;
use std::sync::Arc;

use annals::journal::format::{
    FRAME_HEADER_LEN, FRAME_MAGIC, FRAME_TRAILER_LEN, FRAMES_AT, HEADER_LEN, Header, MAX_PAYLOAD,
    Point, SLOT_AT, SLOT_COPY_AT, Secret, Slot, hash, seeded_hash,
};
use annals::storage::MemoryDirectory;
use siphasher::sip::SipHasher24;

use annals::{Database, Error, ErrorKind, Level, Reader, Recovery, RowId};
use annals_tools::{inspect_in, scan_in};

use super::journals::{self, CITY, Log, NAME, content, dump, helpful, install, open};
use super::memory::peak;
use super::unapplied::stays_before;

/// The nonce of all frames, and the secret in the slots.
const NONCE: u64 = 0x0123_4567_89AB_CDEF;
const SECRET: Secret = [5; 16];

/// A frame that is yet to be added. What isn't set is as it should be.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) level: u8,
    pub(super) flags: u8,
    pub(super) length: Option<u32>,
    pub(super) txid: Option<u64>,
    pub(super) durable: u64,
    pub(super) time: i64,
    pub(super) payload: Vec<u8>,
    /// What it proves itself with.
    pub(super) secret: Secret,
}

impl Frame {
    pub(super) fn commit(payload: &[u8]) -> Self {
        let (kind, level, flags, durable) = (2, 3, 0x80, FRAMES_AT);
        let (payload, secret) = (payload.to_vec(), SECRET);
        Self { kind, level, flags, length: None, txid: None, durable, time: 0, payload, secret }
    }
}

/// A journal in the making: an empty table `t` with a string `s`, then what is added.
pub(super) struct Draft {
    pub(super) bytes: Vec<u8>,
    /// The hash of the header.
    pub(super) segment: u64,
    pub(super) chain: u64,
    pub(super) txid: u64,
}

/// Creates the table 0 with one field, a string.
pub(super) const TABLE: &[u8] = &[0x01, 3, b't', 0x02, 1, 3, b's', 12, 0];

impl Draft {
    /// Begins with an empty journal whose header was changed; all checksums are made right.
    pub(super) fn with_header(change: impl FnOnce(&mut Header)) -> Self {
        let directory = Arc::new(MemoryDirectory::new());
        open(&directory, Recovery::Checked, 1).unwrap().close().unwrap();
        let mut bytes = content(&*directory);
        let head: [u8; HEADER_LEN] = bytes[..HEADER_LEN].try_into().unwrap();
        let mut header = Header::decode(&head).unwrap();
        change(&mut header);
        for at in [0, SLOT_AT[0], SLOT_AT[1]] {
            put(&mut bytes, at, &header.encode());
        }
        let txid = header.first_txid.wrapping_sub(1);
        let mut draft = Self { bytes, segment: header.hash(), chain: header.hash(), txid };
        let point = Point { position: FRAMES_AT, txid: annals::Txid(txid), chain: header.hash() };
        draft.put_slots(
            Slot { point, zeroed_to: FRAMES_AT, sequence: 1, secret: SECRET },
            header.hash(),
        );
        draft
    }

    pub(super) fn new() -> Self {
        let mut draft = Self::with_header(|_| ());
        draft.add(&Frame::commit(TABLE));
        draft
    }

    fn put_slots(&mut self, slot: Slot, header: u64) {
        for copy in SLOT_AT.iter().flat_map(|block| SLOT_COPY_AT.map(|copy| block + copy)) {
            put(&mut self.bytes, copy, &slot.encode(header));
        }
    }

    /// Adds a frame, made by the document alone.
    pub(super) fn add(&mut self, frame: &Frame) {
        let mut frame = frame.clone();
        while frame.payload.len() > MAX_PAYLOAD {
            let rest = frame.payload.split_off(MAX_PAYLOAD);
            self.add_one(&Frame { kind: 1, flags: frame.flags | 32, ..frame.clone() });
            (frame.payload, frame.flags) = (rest, 0);
        }
        self.add_one(&frame);
    }

    fn add_one(&mut self, frame: &Frame) {
        let length = frame.length.unwrap_or(u32::try_from(frame.payload.len()).unwrap());
        let txid = frame.txid.unwrap_or(self.txid.wrapping_add(1));
        let position = self.bytes.len() as u64;
        let distance =
            u16::try_from((position.wrapping_sub(frame.durable)) / 8).unwrap_or(u16::MAX);
        let hash = |bytes: &[u8]| seeded_hash(bytes, NONCE);
        let low = |number: u64| {
            let [a, b, c, d, ..] = number.to_le_bytes();
            [a, b, c, d]
        };
        let mut bytes = FRAME_MAGIC.to_vec();
        bytes.extend([frame.kind, frame.flags | frame.level]);
        bytes.extend(&length.to_le_bytes()[..3]);
        bytes.extend(&frame.time.to_le_bytes()[..7]);
        bytes.extend(distance.to_le_bytes());
        bytes.extend(NONCE.to_le_bytes());
        bytes.extend(low(txid));
        let mut hashed = bytes.clone();
        hashed.extend([0; 4]);
        hashed.extend([position, txid, self.segment].iter().flat_map(|part| part.to_le_bytes()));
        bytes.extend(low(hash(&hashed)));
        assert_eq!(bytes.len(), FRAME_HEADER_LEN);
        bytes.extend(&frame.payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let whole = hash(&bytes);
        let mut tagged: Vec<u8> =
            [position, txid, NONCE].iter().flat_map(|part| part.to_le_bytes()).collect();
        tagged.extend(distance.to_le_bytes());
        tagged.extend([0; 2]);
        tagged.extend(low(whole));
        let mut hasher = SipHasher24::new_with_key(&frame.secret);
        hasher.write(&tagged);
        let mut trailer = low(whole).to_vec();
        trailer.extend(low(hasher.finish()));
        let mut linked = whole.to_le_bytes().to_vec();
        linked.extend(&trailer);
        linked.extend([position, self.chain].iter().flat_map(|part| part.to_le_bytes()));
        self.chain = hash(&linked);
        trailer.extend(self.chain.to_le_bytes());
        assert_eq!(trailer.len(), FRAME_TRAILER_LEN);
        self.bytes.extend(bytes);
        self.bytes.extend(trailer);
        if frame.kind == 2 {
            self.txid = txid;
        }
    }

    pub(super) fn with(mut self, frame: &Frame) -> Self {
        self.add(frame);
        self
    }
}

fn put(bytes: &mut [u8], at: u64, what: &[u8]) {
    let at = usize::try_from(at).unwrap();
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// Opens in every way, and sees that memory stays in proportion to the file.
pub(super) fn open_all(
    bytes: &[u8],
    what: &str,
) -> Result<(Arc<MemoryDirectory>, Database), Error> {
    open_within(64 * bytes.len() + (4 << 20), bytes, what)
}

/// Opens in every way, and sees that memory stays within a limit.
pub(super) fn open_within(
    limit: usize,
    bytes: &[u8],
    what: &str,
) -> Result<(Arc<MemoryDirectory>, Database), Error> {
    let directory = install(bytes);
    let ((), taken) = peak(|| {
        let _ = Reader::open(&*directory, NAME);
        let _ = scan_in(&annals::Options::new(), &*directory, NAME, &mut Log::default());
        let _ = inspect_in(&annals::Options::new(), &*directory, NAME);
    });
    assert!(taken < limit, "{what}: reading {} bytes took {taken}", bytes.len());
    assert_eq!(content(&*directory), bytes, "{what}");
    let (opened, taken) = peak(|| open(&directory, Recovery::Checked, 3));
    assert!(taken < limit, "{what}: opening {} bytes took {taken}", bytes.len());
    if let Err(error) = &opened {
        helpful(error).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        assert_eq!(content(&*directory), bytes, "{what}");
    }
    opened.map(|database| (directory, database))
}

#[track_caller]
pub(super) fn refused(bytes: &[u8], what: &str, kind: ErrorKind, words: &str) {
    match open_all(bytes, what) {
        Ok((_, database)) => panic!("{what}: opened with {}", dump(&database.read())),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.to_string().contains(words), "{what}: {error}");
        }
    }
}

/// The compact integer of eight whole bytes.
pub(super) fn wide(number: u64) -> Vec<u8> {
    [vec![0], number.to_le_bytes().to_vec()].concat()
}

#[test]
fn an_independent_writer_s_journal_is_read() {
    let draft = Draft::new().with(&Frame::commit(&[0x10, 1, 0x11, 1, 5, b'h', b'i', 0x12, 1]));
    let (directory, database) = open_all(&draft.bytes, "a good one").unwrap();
    assert_eq!(database.read().table(CITY).unwrap().len(), 2);
    database.close().unwrap();
    let database = open(&directory, Recovery::Refuse, 4).unwrap();
    assert_eq!(database.read().txid(), annals::Txid(2));
}

#[test]
fn unknown_frames_are_refused_or_skipped() {
    let base = Frame::commit(&[0x20, 3, b'c']);
    for (what, frame) in [
        ("a compressed frame", Frame { flags: 8, ..base.clone() }),
        ("an encrypted frame", Frame { flags: 16, ..base.clone() }),
        ("flags 0x18", Frame { flags: 24, ..base.clone() }),
        ("the salt of an encrypted opening", Frame { kind: 4, ..base.clone() }),
        ("kind 0x7f", Frame { kind: 0x7f, ..base.clone() }),
    ] {
        let draft = Draft::new().with(&frame);
        refused(&draft.bytes, what, ErrorKind::Unsupported, what);
    }
    // A seal that says nothing, and commits after one that does.
    for (payload, after) in [(&[0x20, 3, b'c'][..], 0), (&[3, 3, b'x'], 1)] {
        let seal = Frame { kind: 3, level: 0, ..Frame::commit(payload) };
        let draft = Draft::new().with(&seal);
        let draft = (0..after).fold(draft, |draft, _| draft.with(&base));
        refused(&draft.bytes, "a seal", ErrorKind::Corrupt, "seal");
    }
    let ignorable = Frame { kind: 0x85, level: 1, flags: 0x98, ..Frame::commit(&[0xff; 100]) };
    let draft = Draft::new().with(&ignorable).with(&base);
    let (_, database) = open_all(&draft.bytes, "ignorable").unwrap();
    assert_eq!((database.read().txid().0, database.recovered().cut.is_none()), (2, true));
    let mut log = Log::default();
    scan_in(&annals::Options::new(), &*install(&draft.bytes), NAME, &mut log).unwrap();
    assert_eq!(log.after.len(), 2);
}

#[test]
fn absurd_frames_and_slots_are_no_more_than_damage() {
    absurd_frames();
}

pub(crate) fn absurd_frames() {
    for length in [(1 << 24) - 1, 1 << 20, 1 << 19, 64] {
        let draft = Draft::new().with(&Frame { length: Some(length), ..Frame::commit(&[]) });
        let (_, database) = open_all(&draft.bytes, "a frame's length").unwrap();
        let cut = database.recovered().cut.clone().unwrap();
        assert_eq!((cut.txid.0, cut.may_have_been_acknowledged), (1, true));
    }
    for txid in [0, 1, 3, u64::MAX] {
        let draft = Draft::new().with(&Frame { txid: Some(txid), ..Frame::commit(&[]) });
        let (_, database) = open_all(&draft.bytes, "a frame's txid").unwrap();
        assert_eq!(database.read().txid(), annals::Txid(1));
    }
    // A frame after the end that proves that more was flushed; without the secret it proves nothing.
    for (secret, opens) in [(SECRET, false), ([6; 16], true)] {
        let mut draft = Draft::new();
        draft.bytes.extend([1; 64]);
        let durable = draft.bytes.len() as u64;
        draft.add(&Frame { durable, secret, ..Frame::commit(&[0x20, 1]) });
        match opens {
            true => {
                let (_, database) = open_all(&draft.bytes, "another secret").unwrap();
                assert_eq!(database.recovered().cut.as_ref().unwrap().txid, annals::Txid(1));
            }
            false => refused(&draft.bytes, "durable", ErrorKind::Corrupt, "damaged"),
        }
    }
    let draft = Draft::new().with(&Frame { time: i64::MAX, ..Frame::commit(&[0x20, 1]) });
    let (_, database) = open_all(&draft.bytes, "the end of time").unwrap();
    database.write(|transaction| transaction.comment("later")).unwrap();

    let header = hash(&Draft::new().bytes[..HEADER_LEN]);
    for position in [u64::MAX, 1 << 62, FRAMES_AT + 8_000_000] {
        let mut draft = Draft::new();
        let point = Point { position, txid: annals::Txid(u64::MAX), chain: 0 };
        draft.put_slots(Slot { point, zeroed_to: u64::MAX, sequence: 1, secret: SECRET }, header);
        refused(&draft.bytes, "a slot's position", ErrorKind::Corrupt, "damaged");
    }
    let good = Point { position: FRAMES_AT, txid: annals::Txid(0), chain: header };
    let end = Draft::new().bytes.len() as u64;
    for point in [
        Point { position: FRAMES_AT + 8, ..good },
        Point { txid: annals::Txid(1), ..good },
        Point { chain: 1, ..good },
        Point { position: end, ..good },
    ] {
        let mut draft = Draft::new();
        draft.put_slots(Slot { point, zeroed_to: FRAMES_AT, sequence: 1, secret: SECRET }, header);
        refused(&draft.bytes, "a slot beside the commits", ErrorKind::Corrupt, "histories");
    }
    let mut draft = Draft::new();
    draft.put_slots(Slot { point: good, zeroed_to: u64::MAX, sequence: 1, secret: SECRET }, header);
    open_all(&draft.bytes, "zeroed to the end of the world").unwrap();
}

/// Each costs its length to be checked, and would be for nothing: within a frame whose header verifies
/// there is none.
#[test]
fn frames_within_a_frame_are_not_looked_at() {
    let mut draft = Draft::new();
    let claims = Frame { length: Some(500_000), ..Frame::commit(&[]) };
    // Nothing verifies from here on, so that what follows is looked at one by one.
    draft.bytes.extend([1; 64]);
    (0..13_000).for_each(|_| draft.add(&claims));
    let (_, database) = open_all(&draft.bytes, "overlapping frames").unwrap();
    assert_eq!(database.recovered().cut.as_ref().unwrap().txid, annals::Txid(1));
}

#[test]
fn absurd_events_are_named() {
    let huge = wide(1 << 60);
    let id = |id| wide(id);
    let on_table = |rest: &[u8]| [&[0x10, 1], rest].concat();
    let row = |at: u64| on_table(&[&[0x11][..], &id(at), &[1]].concat());
    let corrupt = ErrorKind::Corrupt;
    for (what, payload, kind) in [
        ("a string of 2^60 bytes", on_table(&[&[0x11, 1][..], &huge].concat()), corrupt),
        ("a comment of 2^64 - 1", [&[0x20][..], &wide(u64::MAX)].concat(), corrupt),
        ("a row id of 2^63 - 1", row(i64::MAX as u64), corrupt),
        ("a row id of 2^64 - 1", row(u64::MAX), corrupt),
        ("a row behind the last", [row(RowId::MAX.0), vec![0x12, 1]].concat(), corrupt),
        ("a row that is there", [row(5), row(5)].concat(), corrupt),
        ("an update of no row", on_table(&[0x13, 1, 1, 1]), corrupt),
        ("a deletion of no row", on_table(&[0x17, 1]), corrupt),
        ("table 2^32 - 1", [&[0x10][..], &wide(u64::from(u32::MAX)), &[0x17, 1]].concat(), corrupt),
        ("table 2^60", [&[0x10][..], &huge].concat(), corrupt),
        ("an index of 2^60 fields", [&[0x03, 3, b'i', 1, 0][..], &huge].concat(), corrupt),
        ("an index of no fields", vec![0x03, 3, b'i', 1, 0, 1], corrupt),
        ("an index of one field twice", vec![0x03, 3, b'i', 1, 0, 5, 1, 0, 1, 0], corrupt),
        ("a table of the same name", vec![0x01, 3, b't'], corrupt),
        ("a table without a name", vec![0x01, 1], corrupt),
        ("a field of type 17", vec![0x02, 1, 3, b'x', 17, 0], corrupt),
        ("a field that refers to no table", vec![0x02, 1, 3, b'x', 15, 9, 0], corrupt),
        ("a null default where none may be", vec![0x02, 1, 3, b'x', 4, 6], corrupt),
        ("a code that is none", vec![0x7f], corrupt),
        ("a code to come", vec![0xc0, 1], ErrorKind::Unsupported),
    ] {
        let draft = Draft::new().with(&Frame::commit(&payload));
        let reason = if kind == corrupt { "" } else { "newer version" };
        stays_before(&draft.bytes, what, reason);
        let mut log = Log::default();
        let _ = scan_in(&annals::Options::new(), &*install(&draft.bytes), NAME, &mut log);
    }
}

#[test]
fn large_but_right_numbers_take_little_memory() {
    let last = [&[0x10, 1, 0x11][..], &wide(RowId::MAX.0), &[1]].concat();
    let draft = Draft::new().with(&Frame::commit(&last));
    let (_, database) = open_all(&draft.bytes, "the last row").unwrap();
    assert!(database.read().table(CITY).unwrap().contains(RowId::MAX).unwrap());
    let refused = database.write(|transaction| transaction.insert(CITY, &["x".into()]));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);

    let mut far_apart = vec![0x10, 1];
    for row in 0..2000u64 {
        far_apart.push(0x11);
        far_apart.extend(wide(row << 51));
        far_apart.push(1);
    }
    let draft = Draft::new().with(&Frame::commit(&far_apart));
    let (_, database) = open_all(&draft.bytes, "2000 rows far apart").unwrap();
    assert_eq!(database.read().table(CITY).unwrap().len(), 2000);

    let tables: Vec<u8> = (0..300u32).flat_map(|it| name(0x01, 'a', it)).collect();
    let draft = Draft::new().with(&Frame::commit(&tables));
    open_all(&draft.bytes, "300 tables").unwrap();
}

#[test]
fn wide_tables_take_memory_in_proportion() {
    // A column takes no page for a few cells, nor for any number of zeros.
    for (fields, rows) in [(2000, 1), (300, 10), (20, 3000)] {
        let mut events: Vec<u8> = Vec::new();
        for field in 0..fields {
            events.push(0x02);
            events.push(1);
            events.extend(&name(0, 'f', field)[1..]);
            events.extend([[12, 1], [5, 0], [13, 1]][field as usize % 3]);
        }
        let nullable = (0..fields).filter(|field| field % 3 != 1).count();
        events.extend([0x10, 1]);
        for row in 0..rows {
            events.extend(if row == 0 { &[0x11, 1][..] } else { &[0x12] });
            events.extend(vec![0xff; nullable.div_ceil(8)]);
            events.push(1); // the string `s`
            events.extend((0..fields).filter(|field| field % 3 == 1).map(|_| 1));
        }
        let draft = Draft::new().with(&Frame::commit(&events));
        let what = format!("{rows} rows of {fields} fields");
        let (_, database) = open_all(&draft.bytes, &what).unwrap();
        assert_eq!(database.read().table(CITY).unwrap().len(), rows);
    }
}

/// Returns an event that begins with a name.
fn name(code: u8, letter: char, number: u32) -> Vec<u8> {
    let name = format!("{letter}{number}");
    let length = u8::try_from(name.len() << 1 | 1).unwrap();
    [&[code, length], name.as_bytes()].concat()
}

#[test]
fn random_events_with_right_checksums_never_panic() {
    let mut rng = annals_simulated::Rng::new(4);
    let rounds = if journals::thorough() { 20_000 } else { 2000 };
    let base = journals::write("base", 5, &[Level::Checksummed; 9], None, true);
    for round in 0..rounds {
        // A frame of a good journal with some bytes changed, checksums made right again.
        let frames: Vec<_> = base.ends.iter().map(|&end| usize::try_from(end).unwrap()).collect();
        let number = rng.index(frames.len());
        let start = if number == 0 { 16384 } else { frames[number - 1] };
        let [a, b, c] = base.bytes[start + 4..start + 7].try_into().unwrap();
        let length = u32::from_le_bytes([a, b, c, 0]);
        let payload = start + FRAME_HEADER_LEN..start + FRAME_HEADER_LEN + length as usize;
        let mut payload = base.bytes[payload].to_vec();
        for _ in 0..=rng.index(3) {
            let at = rng.index(payload.len());
            payload[at] = u8::try_from(rng.below(256)).unwrap();
        }
        let mut draft = Draft::with_header(|_| ());
        for earlier in 0..number {
            let start = if earlier == 0 { 16384 } else { frames[earlier - 1] };
            let [a, b, c] = base.bytes[start + 4..start + 7].try_into().unwrap();
            let length = u32::from_le_bytes([a, b, c, 0]);
            let payload = start + FRAME_HEADER_LEN..start + FRAME_HEADER_LEN + length as usize;
            draft.add(&Frame::commit(&base.bytes[payload]));
        }
        draft.add(&Frame::commit(&payload));
        // By chance it is a vector of a million rows.
        let limit = 64 << 20;
        if let Ok((_, database)) = open_within(limit, &draft.bytes, &format!("round {round}")) {
            // It may make sense by chance: then it can be read in full.
            let _ = dump(&database.read());
        }
    }
}
