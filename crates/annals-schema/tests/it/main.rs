//! Tests of the schema language: text in, text out.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails should panic")]

mod conversions;
mod difference;
mod evolution;
mod joedb;
mod lexer;
mod literal;
mod mistakes;
mod schema_text;
mod time;
