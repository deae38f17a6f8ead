//! The schema language of Annals.
//!
//! In reading order: [`Type`] and [`Value`] are the contents of fields; [`Schema`] is the model, a log of
//! [`Command`]s and the tables they build. [`tokenize`] splits a line of text, [`parse_value`] and [`write_value`]
//! are the text form of values. [`parse`] reads a schema file, [`parse_files`] several as one, [`parse_command`] one
//! line; [`Schema::to_text`] writes it. [`compare`] compares a file's schema with a program's, and a [`Plan`] has the
//! steps of an upgrade. The crate `annals-codegen` writes the typed API of a schema.
//!
//! This crate knows nothing of files, and nothing of the runtime.

mod apply;
mod class;
mod collation;
mod column_types;
mod command;
mod conversions;
mod date;
mod decimal;
mod diagnostics;
mod difference;
mod ids;
mod json;
mod lexer;
mod literal;
mod log;
mod model;
mod names;
mod parser;
mod plan;
mod samples;
mod text;
mod time;
mod types;
mod unordered;
mod uuid;
mod value;
mod variants;
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod wire;

pub use class::{TypeClass, WideValue, Written};
pub use collation::{Collated, canonical_locale};
pub use command::{Command, SchemaError};
pub use conversions::TimeRangeError;
pub use date::{Date, DateError};
pub use decimal::{AnyDecimal, Decimal, DecimalError};
pub use diagnostics::{Diagnostic, nearest, render_all, shorten};
pub use difference::{Difference, Newer, Relation, Subject, compare, first_difference};
pub use ids::{Blob, FieldNumber, IndexNumber, RowId, TableNumber, Txid};
pub use lexer::{LexError, Token, tokenize};
pub use literal::{parse_value, write_default, write_value};
pub use log::Commands;
pub use model::{Field, Index, Schema, Table};
pub use parser::{COMMANDS, Ignored, SchemaFile, parse, parse_command, parse_files};
pub use plan::{Plan, Step};
#[doc(hidden)]
pub use samples::Evolution;
pub use time::{Timestamp, TimestampError};
pub use types::{OnDelete, Type};
pub use uuid::{Uuid, UuidError};
pub use value::{Value, ValueRef};
pub use variants::{Variant, Variants};
