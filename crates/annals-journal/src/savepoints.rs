//! Savepoints of the transaction that is being written: how its frames were at a moment, to return there.
//!
//! A savepoint writes nothing. It remembers a place within the frame that is being filled. As long as that frame is in
//! memory, returning truncates it. Once the frame is written, the part before the savepoint is kept beside it.
//! Returning then cuts off the written frames, durably, and fills the frame again from that part.
//!
//! Invariants
//! 1. The savepoints are in the order of their places, and none is after the end of the frame that is being filled.
//! 2. The savepoints of one written frame share one copy of its bytes, up to the last of them.
//! 3. After a return the frame, the encoder, the position and the chain are as they were. So the events that remain
//!    are at the same positions as if nothing else had been written.

use std::sync::Arc;

use super::format::FRAME_HEADER_LEN;
use super::writer::{Writer, WriterSavepoint};
use crate::Result;
use annals_storage::step;

impl Writer {
    /// Sets a savepoint: [`Self::return_to_savepoint`] returns to the transaction as it is now.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(WriterSavepoint {
            position: self.written,
            chain: self.chain,
            len: self.frame.len(),
            encoder: self.encoder.clone(),
            bytes: None,
        });
    }

    /// Forgets the savepoints after the first `count`.
    pub fn keep_savepoints(&mut self, count: usize) {
        self.savepoints.truncate(count);
    }

    /// Returns to the last savepoint, which remains. Cuts off the frames that were written since, durably, as a
    /// rollback does.
    ///
    /// # Errors
    /// They can't be cut off: the transaction can only be rolled back.
    pub fn return_to_savepoint(&mut self) -> Result<()> {
        let Some(savepoint) = self.savepoints.last().cloned() else { return Ok(()) };
        let WriterSavepoint { position, chain, len, encoder, bytes } = savepoint;
        if let Some(bytes) = bytes {
            if let Some(held) = &mut self.held {
                held.spool.truncate(position);
            } else if self.dirty_to > position {
                let cut = || self.checkpoints.cut(self.committed, position, self.dirty_to);
                step!(SavepointNotCut, cut()?);
            }
            self.start_frame();
            self.frame.extend_from_slice(&bytes);
            (self.written, self.chain) = (position, chain);
            self.dirty_to = self.dirty_to.min(position);
        }
        self.frame.truncate(len);
        self.encoder = encoder;
        Ok(())
    }

    /// Keeps the part of the frame, which is about to be written, that savepoints return to.
    pub(super) fn keep_for_savepoints(&mut self) {
        let of_frame = |savepoint: &&mut WriterSavepoint| savepoint.position == self.written;
        let mut savepoints = self.savepoints.iter_mut().rev().take_while(of_frame).peekable();
        let Some(last) = savepoints.peek() else { return };
        let part = self.frame.get(FRAME_HEADER_LEN..last.len).unwrap_or_default();
        let bytes: Arc<[u8]> = part.into();
        savepoints.for_each(|savepoint| savepoint.bytes = Some(Arc::clone(&bytes)));
    }
}
