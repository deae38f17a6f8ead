//! The document says the same as the code, byte for byte.

mod document;
mod vectors;
