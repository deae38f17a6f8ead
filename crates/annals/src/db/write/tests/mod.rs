//! Tests of transactions that need the inside of the store, or that Miri runs.

mod group;
mod unloadable;
