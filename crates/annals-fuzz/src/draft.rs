//! Journals made from any bytes, with right checksums: what is in them gets past the first look.
//!
//! The bytes are a program for [`draft`]: each step is a byte that says which, then what it takes.

use std::sync::{Arc, OnceLock};

use annals::Blob;
use annals::journal::format::{
    FLAG_EXPLICIT_TIME, FLAG_FIRST, FRAMES_AT, HEADER_LEN, Header, KIND_COMMIT, KIND_DATA, Point,
    SLOT_AT, SLOT_COPY_AT, Slot,
};
use annals::journal::testing::{Around, Frame, encode};
use annals::storage::MemoryDirectory;

use crate::file::{bytes_of, open};

/// The most bytes of zeros of a draft.
const ZEROS: usize = 1 << 16;

/// The secret in the slots of a draft.
const SECRET: [u8; 16] = [5; 16];

/// The rest of the input.
pub(crate) struct Input<'i>(pub(crate) &'i [u8]);

impl<'i> Input<'i> {
    /// Takes the next byte, or 0 at the end.
    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Takes a number of so many bytes.
    fn number(&mut self, width: usize) -> u64 {
        self.take(width).iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Takes so many bytes, or as many as there are.
    fn take(&mut self, len: usize) -> &'i [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes a number of one byte, then so many bytes.
    fn counted(&mut self) -> &'i [u8] {
        let len = self.byte();
        self.take(usize::from(len))
    }
}

/// Appends events as they stand in the input, or a piece of a blob with a right checksum.
pub(crate) fn put_events(step: u8, input: &mut Input<'_>, payload: &mut Vec<u8>) {
    if step.is_multiple_of(2) {
        payload.extend_from_slice(input.counted());
    } else {
        let (blob, offset) = (Blob(input.number(1)), input.number(2));
        annals_event::piece::put(payload, blob, offset, input.counted());
    }
}

struct Draft {
    bytes: Vec<u8>,
    header: Header,
    /// Where each frame begins and the last one ends.
    points: Vec<Point>,
    /// Events that no frame holds yet.
    payload: Vec<u8>,
    /// Places that are damaged at the end, and how.
    damage: Vec<(u64, u8)>,
    zeros: usize,
    /// The secret of the next frames.
    secret: [u8; 16],
    is_committed: bool,
}

/// Makes a journal as the input says.
pub(crate) fn draft(input: &[u8]) -> Vec<u8> {
    let mut input = Input(input);
    let mut draft = Draft::new();
    while !input.0.is_empty() {
        let step = input.byte();
        draft.step(step, &mut input);
    }
    let Draft { mut bytes, damage, .. } = draft;
    for (at, bits) in damage {
        let len = bytes.len() as u64;
        if let Some(byte) = usize::try_from(at % len).ok().and_then(|at| bytes.get_mut(at)) {
            *byte ^= bits;
        }
    }
    bytes
}

/// An empty journal.
fn empty() -> &'static [u8] {
    static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
    EMPTY.get_or_init(|| {
        let directory = Arc::new(MemoryDirectory::new());
        let made = open(&directory, annals::Recovery::Checked).and_then(annals::Database::close);
        assert!(made.is_ok(), "an empty journal can be made");
        bytes_of(&directory)
    })
}

impl Draft {
    fn new() -> Self {
        let mut bytes = empty().to_vec();
        bytes.truncate(usize::try_from(FRAMES_AT).unwrap_or(0));
        let head = bytes.first_chunk::<HEADER_LEN>().and_then(Header::decode);
        let header = head.expect("an empty journal has a header");
        let (points, payload, damage) = (Vec::new(), Vec::new(), Vec::new());
        let (zeros, secret, is_committed) = (0, SECRET, true);
        let mut draft =
            Self { bytes, header, points, payload, damage, zeros, secret, is_committed };
        draft.put_header();
        draft
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        match step % 11 {
            0 | 1 => put_events(step % 11, input, &mut self.payload),
            2 => self.commit(KIND_COMMIT, input.byte()),
            3 => self.commit(KIND_DATA, input.byte()),
            4 => self.odd_frame(input),
            5 => self.bytes.extend_from_slice(input.counted()),
            6 => {
                let count = usize::try_from(input.number(2)).unwrap_or(0).min(ZEROS - self.zeros);
                self.zeros += count;
                self.bytes.resize(self.bytes.len() + count, 0);
            }
            7 => self.damage.push((input.number(3), input.byte())),
            8 => self.slots(input),
            9 => self.change_header(input),
            _ => self.put_over(input),
        }
    }

    /// Ends the payload as a frame whose header is as it should be.
    fn commit(&mut self, kind: u8, how: u8) {
        let mut frame = self.frame(kind);
        frame.level = [0, 3, 1, 2][usize::from(how % 4)];
        frame.flags |= if how >> 2 & 1 == 1 { FLAG_EXPLICIT_TIME } else { 0 };
        if how & 8 != 0 {
            frame.durable = Some(frame.position);
        }
        self.add(&frame);
    }

    /// Ends the payload as a frame whose header has something that it shouldn't.
    fn odd_frame(&mut self, input: &mut Input<'_>) {
        let (which, number) = (input.byte(), input.number(8));
        let mut frame = self.frame(if which & 16 == 0 { KIND_COMMIT } else { KIND_DATA });
        let [first, second, ..] = number.to_le_bytes();
        match which % 10 {
            0 => frame.kind = first,
            1 => frame.level = first,
            2 => frame.flags = first & !3,
            3 => frame.length = frame.length.wrapping_add(u32::from(first)),
            4 => frame.txid = number,
            5 => frame.position = number,
            6 => self.secret[0] = second,
            7 => frame.durable = Some(number),
            8 => frame.time = number.cast_signed(),
            _ => frame.nonce = number,
        }
        self.add(&frame);
    }

    fn frame(&mut self, kind: u8) -> Frame {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let last = self.last();
        let is_first = self.points.last().is_none_or(|_| self.is_committed);
        Frame {
            kind,
            level: 3,
            flags: if is_first { FLAG_FIRST } else { 0 },
            length: u32::try_from(self.payload.len()).unwrap_or(u32::MAX),
            txid: last.txid.0.wrapping_add(1),
            position: self.bytes.len() as u64,
            durable: Some(FRAMES_AT),
            nonce: 0,
            time: 0,
        }
    }

    fn add(&mut self, frame: &Frame) {
        let (segment, previous) = (self.header.hash(), self.last().chain);
        let around = Around { segment, previous, secret: self.secret };
        let (bytes, chain) = encode(frame, &std::mem::take(&mut self.payload), around);
        self.is_committed = frame.kind == KIND_COMMIT;
        self.bytes.extend(bytes);
        let position = self.bytes.len() as u64;
        let txid = if frame.kind == KIND_COMMIT { frame.txid } else { self.last().txid.0 };
        self.points.push(Point { position, txid: annals::Txid(txid), chain });
    }

    fn last(&self) -> Point {
        self.points.last().copied().unwrap_or(Point {
            position: FRAMES_AT,
            txid: annals::Txid(self.header.first_txid.wrapping_sub(1)),
            chain: self.header.hash(),
        })
    }

    /// Writes some copies of the slots: with the end of a frame, and a number changed.
    fn slots(&mut self, input: &mut Input<'_>) {
        let (which, number, behind) = (input.byte(), input.byte(), input.number(2));
        let point = self.points.get(usize::from(number)).copied().unwrap_or(self.last());
        let zeroed_to = point.position.wrapping_add(behind);
        let mut slot = Slot { point, zeroed_to, sequence: u64::from(which >> 4), secret: SECRET };
        match which >> 4 {
            1 => slot.point.position = slot.point.position.wrapping_add(input.number(8)),
            2 => slot.point.txid = annals::Txid(input.number(8)),
            3 => slot.point.chain = input.number(8),
            4 => slot.zeroed_to = input.number(8),
            5 => slot.sequence = input.number(8),
            _ => {}
        }
        self.put_slots(&slot, which);
    }

    fn put_slots(&mut self, slot: &Slot, which: u8) {
        let places = SLOT_AT.iter().flat_map(|block| SLOT_COPY_AT.map(|copy| block + copy));
        let content = slot.encode(self.header.hash());
        for (number, at) in places.enumerate() {
            if which >> number & 1 == 1 {
                self.put(at, &content);
            }
        }
    }

    /// Changes the header, as long as no frame rests on it.
    fn change_header(&mut self, input: &mut Input<'_>) {
        let (which, number) = (input.byte(), input.number(8));
        if !self.points.is_empty() {
            return;
        }
        let header = &mut self.header;
        match which % 9 {
            0 => header.version = u32::from_le_bytes([number.to_le_bytes()[0], 0, 0, 0]),
            1 => header.compatible = number,
            2 => header.read_only_compatible = number,
            3 => header.incompatible = number,
            4 => header.segment = number,
            5 => header.first_txid = number,
            6 => header.previous_chain = number,
            7 => header.created = number.cast_signed(),
            _ => header.reserved[0] = number.to_le_bytes()[0],
        }
        self.put_header();
    }

    fn put_header(&mut self) {
        let content = self.header.encode();
        for at in [0, SLOT_AT[0], SLOT_AT[1]] {
            self.put(at, &content);
        }
        let point = self.last();
        self.put_slots(&Slot { point, zeroed_to: FRAMES_AT, sequence: 1, secret: SECRET }, 15);
    }

    /// Writes bytes over what is there.
    fn put_over(&mut self, input: &mut Input<'_>) {
        let at = input.number(3) % self.bytes.len() as u64;
        self.put(at, input.counted());
    }

    fn put(&mut self, at: u64, what: &[u8]) {
        let place = usize::try_from(at).unwrap_or(usize::MAX);
        let to = self.bytes.get_mut(place..).unwrap_or_default();
        to.iter_mut().zip(what).for_each(|(to, from)| *to = *from);
    }
}
