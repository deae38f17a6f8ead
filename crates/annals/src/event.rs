//! Events: the one description of a change, which every consumer of the journal takes.

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use annals_event::testing;
pub use annals_event::{
    ERASED, Event, MAX_PIECE, MAX_VECTOR, Script, Vector, has_erased, is_erased, width,
    write_field_value,
};

pub(crate) use annals_event::{
    BARE_ROWS, Context, Sink, VectorPart, compact, decode, decode_from, decode_to, opcode,
    part_value, parts, piece,
};
