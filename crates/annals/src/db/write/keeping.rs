//! How an open database keeps its history index.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard};

use crate::journal::lock;

/// How an open database keeps its history index.
#[derive(Debug)]
pub(in crate::db) struct Keeping {
    /// False if a backfill doesn't extend it.
    pub(in crate::db) keeps: bool,
    /// Held while the journal is read for it, and while segments are removed.
    reading: Mutex<()>,
    pub(in crate::db) problem: Mutex<Option<String>>,
    /// How often its nodes were found damaged when it was last made of the journal for that.
    pub(in crate::db) damaged: AtomicUsize,
    /// True if the database is being closed: that is not to take seconds.
    pub(in crate::db) is_closing: AtomicBool,
}

impl Keeping {
    pub(in crate::db) fn new(keeps: bool) -> Self {
        Self {
            keeps,
            reading: Mutex::default(),
            problem: Mutex::default(),
            damaged: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Prevents reading for it while the returned guard exists.
    pub(in crate::db) fn pause(&self) -> MutexGuard<'_, ()> {
        lock(&self.reading)
    }
}
