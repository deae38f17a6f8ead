//! The holders of each lock of a file that only this process knows: in memory, or simulated.

use std::ops::Range;

use super::{Hold, Lock};

/// The locks of one file, by the numbers of the handles that hold them. Each lock is free, held by
/// one handle exclusively, or shared by some.
#[derive(Debug, Default)]
pub struct Holders {
    held: Vec<(Lock, Hold, u64)>,
}

impl Holders {
    /// Acquires a lock for a handle if no other conflicts; returns true if the handle has it now.
    pub fn try_lock(&mut self, lock: Lock, hold: Hold, handle: u64) -> std::io::Result<bool> {
        let of_lock = || self.held.iter().filter(|(held, ..)| *held == lock);
        if let Some((_, own, _)) = of_lock().find(|(.., holder)| *holder == handle) {
            return super::lock::check_same(*own, hold).map(|()| true);
        }
        let is_free = match hold {
            Hold::Shared => of_lock().all(|(_, other, _)| *other == Hold::Shared),
            Hold::Exclusive => of_lock().next().is_none(),
        };
        if is_free {
            self.held.push((lock, hold, handle));
        }
        Ok(is_free)
    }

    /// Returns the least of these numbers whose pin a handle has.
    pub fn oldest_pin(&self, roots: Range<u64>) -> Option<u64> {
        let pin = |lock: Lock| if let Lock::Pin(root) = lock { Some(root) } else { None };
        let pins = self.held.iter().filter_map(|(lock, ..)| pin(*lock));
        pins.filter(|root| roots.contains(root)).min()
    }

    /// Returns this process, if a handle has the lock: no other process can.
    pub fn holder(&self, lock: Lock) -> Option<u32> {
        self.held.iter().any(|(held, ..)| *held == lock).then(std::process::id)
    }

    /// Takes a lock from a handle, if it has it.
    pub fn unlock(&mut self, lock: Lock, handle: u64) {
        self.held.retain(|(held, _, holder)| (*held, *holder) != (lock, handle));
    }

    /// Takes all locks from a handle.
    pub fn end(&mut self, handle: u64) {
        self.held.retain(|(.., holder)| *holder != handle);
    }
}
