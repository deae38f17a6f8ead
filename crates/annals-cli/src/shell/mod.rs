//! The shell: a table of its commands, their handlers, and the input and output of lines.
//!
//! [`commands`] is the table of all [`command`]s, and [`catalog`] looks them up: dispatch, help, error messages and
//! completion are made from it. [`session`] runs lines; [`schema`], [`rows`], [`vectors`], [`blobs`], [`image`],
//! [`display`] and [`help`] are the handlers of commands. [`script`] and [`interactive`] are the two that read lines.

mod blobs;
pub(crate) mod catalog;
mod command;
mod commands;
pub(crate) mod completion;
mod display;
pub(crate) mod editor;
mod form;
mod help;
pub(crate) mod history;
mod image;
pub(crate) mod interactive;
#[cfg(feature = "net")]
pub(crate) mod replica;
mod rows;
mod savepoints;
mod schema;
pub(crate) mod screen;
pub(crate) mod script;
pub(crate) mod session;
#[cfg(feature = "sqlite")]
pub(crate) mod sql;
mod vectors;
mod words;

pub(crate) use help::overview;
