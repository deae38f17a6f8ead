//! Tests of SQL over databases.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers below small ones")]

mod conditions;
mod costs;
mod erased;
mod extension;
mod forks;
mod forms;
mod joins;
mod limits;
mod logic;
mod museum;
mod past;
mod plans;
mod random;
mod schemas;
mod shop;
mod snapshots;
mod unsigned;
