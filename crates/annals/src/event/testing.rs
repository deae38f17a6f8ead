//! The codec of events by itself, for fuzzing.

use annals_schema::{Blob, Schema};

use super::{Event, decode, piece};
use crate::Result;

/// Decodes the events of one frame's payload, as replay does.
///
/// # Errors
/// `Corrupt`, `Unsupported`; and what the sink returns.
pub fn decode_payload(
    payload: &[u8],
    position: u64,
    schema: &mut Schema,
    sink: &mut dyn FnMut(&Schema, &Event<'_>) -> Result<()>,
) -> Result<()> {
    decode(payload, position, schema, &mut |schema, event| sink(schema, event))
}

/// Encodes the events of one frame, one after the other.
#[derive(Debug, Default)]
pub struct Encoder(super::Encoder);

impl Encoder {
    /// Appends an event. `schema` is the one before it.
    pub fn encode(&mut self, schema: &Schema, event: &Event<'_>, out: &mut Vec<u8>) {
        self.0.encode(schema, event, out);
    }
}

/// Appends a piece of a blob, whose checksum is right whatever its numbers are.
pub fn put_piece(out: &mut Vec<u8>, blob: Blob, offset: u64, bytes: &[u8]) {
    piece::put(out, blob, offset, bytes);
}
