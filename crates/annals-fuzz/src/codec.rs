//! The codecs of heads, frames and events, each by itself.

use annals::Schema;
use annals::event::{Event, Script};
use annals::journal::format::{
    FLAG_FAR_TIME, FRAMES_AT, Header, LEVEL_MASK, Live, MAX_PAYLOAD, Slot,
};
use annals::journal::testing::{self, Around, Frame, decode, encode};
use annals_event::Encoder;

use crate::draft::{Input, put_events};

/// Tables with fields of all types and an index, for events to speak of.
const SCHEMA: &str = "\
create_table a
add_field a b bool
add_field a i int8
add_field a j int16 null
add_field a k int32
add_field a l int64 null
add_field a u uint8
add_field a v uint16
add_field a w uint32 null
add_field a x uint64
create_table c
add_field c f float32 null
add_field c g float64
add_field c s string null
add_field c t bytes
add_field c p blob
add_field c m timestamp null
add_field c r references a
add_field c q references c cascade
create_index by_s c s,g
";

/// Where the payload is taken to be in a file.
const POSITION: u64 = 1000;

/// Takes the bytes for what the first one says: a payload, a payload made with right checksums, a
/// frame, or a part of a journal's head.
///
/// # Panics
/// If what decodes isn't the same when it is encoded and decoded again.
pub fn codec(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    match how % 4 {
        0 => payload(rest),
        1 => payload(&made_payload(rest)),
        2 => frame(rest),
        _ => head(rest),
    }
}

fn made_payload(input: &[u8]) -> Vec<u8> {
    let (mut input, mut payload) = (Input(input), Vec::new());
    while !input.0.is_empty() {
        let step = input.byte();
        put_events(step, &mut input, &mut payload);
    }
    payload
}

/// The decoded events: as text, as lines of a script, and encoded again.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    events: Vec<String>,
    lines: Vec<String>,
    bytes: Vec<u8>,
    schema: Schema,
}

fn payload(bytes: &[u8]) {
    let Some(decoded) = decoded(bytes) else { return };
    let again = self::decoded(&decoded.bytes);
    assert_eq!(again.as_ref(), Some(&decoded), "{bytes:x?}");
}

fn decoded(payload: &[u8]) -> Option<Decoded> {
    let mut schema = annals_schema::parse(SCHEMA).ok()?.schema;
    let mut decoded = Decoded::default();
    let (mut encoder, mut script) = (Encoder::default(), Script::new());
    annals_event::decode(payload, POSITION, &mut schema, &mut |schema, event| {
        decoded.events.push(shown(schema, event));
        encoder.encode(schema, event, &mut decoded.bytes);
        let mut line = String::new();
        script.push(schema, event, &mut line)?;
        assert!(!line.contains('\n'), "a command of more than one line: {line}");
        decoded.lines.push(line);
        Ok(())
    })
    .ok()?;
    decoded.schema = schema;
    Some(decoded)
}

/// Writes an event in a form that doesn't depend on the event's position, or on the form of its values.
fn shown(schema: &Schema, event: &Event<'_>) -> String {
    match *event {
        Event::Blob { blob, offset, bytes, position } => {
            assert!(position >= POSITION, "{position}");
            format!("{blob:?} {offset} {bytes:?}")
        }
        Event::UpdateVector { table, id, field, values } => {
            let ty = schema.table(table).and_then(|table| table.field(field)).map(|field| field.ty);
            let values: Option<Vec<_>> = ty.map(|ty| values.iter(ty).collect());
            format!("{table:?} {id:?} {field:?} {values:?}")
        }
        _ => format!("{event:?}"),
    }
}

/// Takes the bytes for a frame at a position that they say themselves; then for one with its checksums
/// made right.
fn frame(bytes: &[u8]) {
    let position = bytes.get(24..32).and_then(|bytes| bytes.try_into().ok());
    let position = position.map_or(0, u64::from_le_bytes) & !7;
    repaired(bytes, position);
    if let Some(found) = decode(bytes, position, 0, Around::default()) {
        let again = encode(&found.frame, found.payload, Around::default());
        assert!(again.0.len() >= found.payload.len(), "a frame holds its payload");
    }
}

/// Makes a frame of any bytes, which must be read as it was written, and only in its place.
fn repaired(bytes: &[u8], position: u64) {
    let Some((head, payload)) = bytes.split_at_checked(32) else { return };
    let mut numbers = head
        .chunks(8)
        .map(|chunk| chunk.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)));
    let mut number = || numbers.next().unwrap_or(0);
    let (codes, previous, durable) = (number().to_le_bytes(), number(), number());
    let [kind, level, low, ..] = codes;
    let payload = payload.get(..payload.len().min(MAX_PAYLOAD)).unwrap_or_default();
    let claim = position.checked_sub(8 * (durable % 65_535)).filter(|&at| at >= FRAMES_AT);
    let frame = Frame {
        kind,
        level: level & LEVEL_MASK,
        flags: low & !LEVEL_MASK & !FLAG_FAR_TIME,
        length: u32::try_from(payload.len()).unwrap_or(0),
        txid: u64::from_le_bytes(codes),
        position,
        durable: claim,
        nonce: !previous,
        time: durable.cast_signed() >> 8,
    };
    let around = Around { segment: durable, previous, secret: [kind; 16] };
    let (mut bytes, chain) = encode(&frame, payload, around);
    let expected = testing::Decoded { frame, payload, chain, follows: true, proven: claim };
    assert_eq!(decode(&bytes, position, frame.txid, around), Some(expected));
    assert_eq!(decode(&bytes, position ^ 8, frame.txid, around), None, "a frame proves its place");
    let elsewhere = Around { segment: !durable, ..around };
    assert_eq!(decode(&bytes, position, frame.txid, elsewhere), None, "and its segment");
    let len = bytes.len();
    for place in [usize::from(kind) * 7 % len, len - 9, len - 1] {
        let damaged = |bytes: &mut Vec<u8>| {
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= level | 1;
            }
        };
        damaged(&mut bytes);
        let found = decode(&bytes, position, frame.txid, around);
        assert!(found.is_none_or(|found| !found.follows), "byte {place} doesn't matter");
        damaged(&mut bytes);
    }
}

/// Takes the bytes for each part of a head, with its checksum made right.
fn head(bytes: &[u8]) {
    if let Some(mut bytes) = bytes.first_chunk().copied() {
        seal(&mut bytes);
        if let Some(header) = Header::decode(&bytes) {
            assert_eq!(header.encode(), bytes, "a header is kept as it is");
        }
    }
    let Some(mut bytes) = bytes.first_chunk().copied() else { return };
    if let Some(live) = bytes.first_chunk().copied() {
        let mut live = live;
        seal(&mut live);
        if let Some(live) = Live::decode(&live) {
            assert_eq!(Live::decode(&live.encode()), Some(live));
        }
    }
    let header = bytes.get(40..48).and_then(|bytes| bytes.try_into().ok());
    let header = header.map_or(0, u64::from_le_bytes);
    seal(&mut bytes);
    if let Some(slot) = Slot::decode(&bytes, header) {
        assert_eq!(Slot::decode(&slot.encode(header), header), Some(slot));
        assert_eq!(Slot::decode(&bytes, !header), None, "a slot belongs to one segment");
    }
}

/// Puts the hash of all before the last eight bytes there.
fn seal(bytes: &mut [u8]) {
    if let Some((content, sum)) = bytes.split_last_chunk_mut::<8>() {
        *sum = annals::journal::format::hash(content).to_le_bytes();
    }
}
