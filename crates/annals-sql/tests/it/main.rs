//! Tests of SQL over databases.

mod costs;
mod extension;
mod forms;
mod limits;
mod logic;
mod past;
mod plans;
mod random;
mod shop;
mod snapshots;
