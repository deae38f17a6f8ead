//! Writing a segment again: the same frames, with other payloads where those change, and so in other places and
//! with other chains.
//!
//! The file is published only when it is whole and flushed, so frames may claim that they are flushed.

use std::io;

use annals::{Point, Txid};
use annals_journal::format::{
    FLAG_FAR_TIME, FLAG_FIRST, FLAG_MORE, FRAME_HEADER_LEN, FRAMES_AT, Header, KIND_DATA,
    MAX_PAYLOAD, SECTOR, Secret,
};
use annals_journal::{
    FrameHeader, Making, finish_frame, first_slot, frame_len, head_with, write_slot,
};
use annals_storage::{Clock, Storage};

/// So much is written at once.
const STEP: usize = 1 << 20;

/// A segment that is being written.
pub(super) struct Rewriting<'s> {
    storage: &'s dyn Storage,
    clock: &'s dyn Clock,
    /// The hash of the segment's header.
    segment: u64,
    secret: Secret,
    /// The next frame in the file, and its position.
    buffer: Vec<u8>,
    at: u64,
    /// The chain so far.
    chain: u64,
    /// The end of the last commit.
    end: Point,
}

impl<'s> Rewriting<'s> {
    /// Begins a segment, in an empty file.
    pub(super) fn begin(storage: &'s dyn Storage, header: &Header, clock: &'s dyn Clock) -> Self {
        let txid = Txid(header.first_txid - 1);
        let end = Point { position: FRAMES_AT, txid, chain: header.hash() };
        let secret = clock.secret();
        let buffer = head_with(header, &first_slot(end, secret));
        let (segment, chain) = (header.hash(), end.chain);
        Self { storage, clock, segment, secret, buffer, at: 0, chain, end }
    }

    /// Adds a frame with this payload, and with this header except for the position. A payload that is longer than a
    /// frame is one event, which is written in parts. Returns its chain.
    pub(super) fn frame(&mut self, old: &FrameHeader, payload: &[u8]) -> io::Result<u64> {
        let mut header = FrameHeader { flags: old.flags & !FLAG_MORE, ..*old };
        let mut rest = payload;
        while let Some((part, after)) =
            rest.split_at_checked(MAX_PAYLOAD).filter(|(_, after)| !after.is_empty())
        {
            let flags = header.flags | FLAG_MORE;
            self.one(&FrameHeader { kind: KIND_DATA, flags, ..header }, part)?;
            header.flags &= !FLAG_FIRST;
            rest = after;
        }
        self.one(&header, rest)
    }

    /// Fills the payload of the next commit frame so that the frame ends at the end of a sector.
    pub(super) fn pad(&self, payload: &mut Vec<u8>) {
        let position = self.at + self.buffer.len() as u64;
        let end = position + frame_len(payload.len() as u64);
        let missing = end.next_multiple_of(SECTOR) - end;
        annals_event::pad(usize::try_from(missing).unwrap_or_default(), payload);
    }

    fn one(&mut self, old: &FrameHeader, payload: &[u8]) -> io::Result<u64> {
        let position = self.at + self.buffer.len() as u64;
        let mut bytes = vec![0; FRAME_HEADER_LEN];
        bytes.extend_from_slice(payload);
        if old.flags & FLAG_FAR_TIME != 0 {
            bytes.extend_from_slice(&old.time.to_le_bytes());
        }
        let length = u32::try_from(bytes.len() - FRAME_HEADER_LEN).map_err(io::Error::other)?;
        let (durable, nonce) = (Some(position), self.clock.random());
        let header = FrameHeader { length, position, durable, nonce, ..*old };
        let making = Making { segment: self.segment, previous: self.chain, secret: &self.secret };
        self.chain = finish_frame(&mut bytes, &header, making);
        self.buffer.append(&mut bytes);
        if header.is_commit() {
            let position = self.at + self.buffer.len() as u64;
            self.end = Point { position, txid: Txid(header.txid), chain: self.chain };
        }
        if self.buffer.len() >= STEP { self.write() } else { Ok(()) }.map(|()| self.chain)
    }

    fn write(&mut self) -> io::Result<()> {
        self.storage.write_at(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the segment: writes the rest of it and its slots, and flushes. Returns the segment's length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.write()?;
        let slot = first_slot(self.end, self.secret);
        for which in [0, 1] {
            write_slot(self.storage, which, &slot, self.segment)?;
        }
        self.storage.flush()?;
        Ok(self.at)
    }
}
