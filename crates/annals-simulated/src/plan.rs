//! The planned faults, and when they happen.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;

/// How an operation that changes something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An input/output error; nothing happens. A later flush can still cover the data of the failed one.
    Io,
    /// No space is left; nothing happens. (A flush that fails so, as on file systems with late allocation, loses data
    /// like [`FlushLoses`](Self::FlushLoses).)
    NoSpace,
    /// A write of only the first `bytes`, then an input/output error. Other operations fail as with
    /// [`Io`](Self::Io).
    ShortWrite {
        /// How many bytes are written.
        bytes: usize,
    },
    /// A write in two parts, the second of which continues from `bytes`: it succeeds, but a crash may
    /// leave the first part alone, even inside one sector. Other operations just succeed.
    SplitWrite {
        /// How many bytes the first part has.
        bytes: usize,
    },
    /// A flush that fails and drops its data: it may be on the disk or not, and no later flush covers it. Other
    /// operations fail as with [`Io`](Self::Io).
    FlushLoses,
}

/// The fault of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// An input/output error.
    Io,
    /// One bit, chosen by the seed, is wrong in the bytes read; the disk itself is unchanged.
    BitFlip,
}

/// All that is to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultPlan {
    pub(crate) crash_at: Option<u64>,
    /// At which operation the process dies whose it is, and how that one fails.
    pub(crate) kill_at: Option<(u64, Fault)>,
    faults: BTreeMap<u64, Fault>,
    fault_from: Option<(u64, Fault)>,
    read_faults: BTreeMap<u64, ReadFault>,
    /// How many bytes the disk holds.
    pub(crate) space: Option<u64>,
    /// During which operations nothing is left of it.
    full: Option<Range<u64>>,
}

impl FaultPlan {
    pub(crate) fn add(&mut self, operation: u64, fault: Fault) {
        self.faults.insert(operation, fault);
    }

    pub(crate) fn add_from(&mut self, operation: u64, fault: Fault) {
        self.fault_from = Some((operation, fault));
    }

    pub(crate) fn add_read(&mut self, read: u64, fault: ReadFault) {
        self.read_faults.insert(read, fault);
    }

    pub(crate) fn fill(&mut self, operations: Range<u64>) {
        self.full = Some(operations);
    }

    /// Returns how many bytes the disk holds in the operation after which there were `operations`.
    pub(crate) fn space_at(&self, operations: u64) -> Option<u64> {
        let number = operations.saturating_sub(1);
        match &self.full {
            Some(full) if full.contains(&number) => Some(0),
            _ => self.space,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn fault_at(&self, operation: u64) -> Option<Fault> {
        let lasting = self.fault_from.filter(|(from, _)| operation >= *from);
        self.faults.get(&operation).copied().or(lasting.map(|(_, fault)| fault))
    }

    pub(crate) fn read_fault_at(&self, read: u64) -> Option<ReadFault> {
        self.read_faults.get(&read).copied()
    }
}

/// The cause of every error once the power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOff;

impl fmt::Display for PowerOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the power is off (simulated)")
    }
}

impl std::error::Error for PowerOff {}

/// True if an error, or one of its causes, is that the simulated power is off.
#[must_use]
pub fn is_power_off(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let ours =
            error.downcast_ref::<annals_storage::Error>().and_then(annals_storage::Error::io_error);
        let inner = error.downcast_ref::<io::Error>().or(ours).and_then(io::Error::get_ref);
        if error.is::<PowerOff>() || inner.is_some_and(|inner| inner.is::<PowerOff>()) {
            return true;
        }
        next = error.source();
    }
    false
}

pub(crate) fn power_off() -> io::Error {
    io::Error::other(PowerOff)
}

pub(crate) fn input_output() -> io::Error {
    io::Error::other("input/output error (simulated)")
}

pub(crate) fn killed() -> io::Error {
    io::Error::other("the process was killed (simulated)")
}

pub(crate) fn no_space() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on the disk (simulated)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_cut_is_known_through_the_library_s_error() {
        let error = annals_storage::Error::io("flushing the journal", power_off());
        assert!(is_power_off(&error));
        assert!(is_power_off(&power_off()));
        assert!(!is_power_off(&annals_storage::Error::io("flushing the journal", input_output())));
    }
}
