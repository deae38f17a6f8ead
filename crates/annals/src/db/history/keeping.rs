//! The state of the history index of an open database.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use crate::db::options::Sizes;
use crate::journal::lock;

/// The state of the history index of an open database.
#[derive(Debug)]
pub(in crate::db) struct Keeping {
    /// None if there is to be none.
    pub(in crate::db) sizes: Option<Sizes>,
    /// Held while something is added, and while segments are removed.
    adding: Mutex<()>,
    /// True if one was taken out of the way. If a rebuilt index can't be used either, the index isn't the cause.
    pub(in crate::db) is_anew: AtomicBool,
    pub(in crate::db) problem: Mutex<Option<String>>,
}

impl Keeping {
    pub(in crate::db) fn new(sizes: Option<Sizes>) -> Self {
        Self {
            sizes,
            adding: Mutex::default(),
            is_anew: AtomicBool::default(),
            problem: Mutex::default(),
        }
    }

    /// Prevents additions while the returned guard exists.
    pub(in crate::db) fn pause(&self) -> MutexGuard<'_, ()> {
        lock(&self.adding)
    }
}
