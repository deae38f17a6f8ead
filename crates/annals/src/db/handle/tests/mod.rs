//! Tests of transactions that need the inside of the store.

mod unloadable;
