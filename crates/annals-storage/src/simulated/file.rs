//! A handle of a file on the simulated disk.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SimulatedDisk;
use crate::{Access, Hold, Lock, Storage, check_lockable, check_writable};

/// One handle, which owns the locks taken through it.
#[derive(Debug)]
pub(super) struct SimulatedFile {
    pub(super) disk: SimulatedDisk,
    pub(super) inode: u64,
    pub(super) name: Mutex<String>,
    pub(super) access: Access,
    pub(super) handle: u64,
}

impl SimulatedFile {
    fn name(&self) -> MutexGuard<'_, String> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        let mut machine = self.disk.machine();
        machine.check_power()?;
        Ok(machine.inode(self.inode)?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.machine().read(self.inode, offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        check_writable(self.access)?;
        self.disk.interrupt();
        self.disk.machine().write(self.inode, &self.name(), offset, data)
    }

    fn flush(&self) -> io::Result<()> {
        check_writable(self.access)?;
        self.disk.interrupt();
        self.disk.machine().flush(self.inode, &self.name())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        check_writable(self.access)?;
        self.disk.interrupt();
        self.disk.machine().set_len(self.inode, &self.name(), len)
    }

    fn has_fixed_len(&self) -> bool {
        self.disk.machine().inode(self.inode).is_ok_and(|inode| inode.is_device)
    }

    fn try_lock(&self, lock: Lock, hold: Hold) -> io::Result<bool> {
        check_lockable(self.access, hold)?;
        let mut machine = self.disk.machine();
        machine.check_power()?;
        machine.inode(self.inode)?.holders.try_lock(lock, hold, self.handle)
    }

    fn unlock(&self, lock: Lock) -> io::Result<()> {
        self.disk.machine().inode(self.inode)?.holders.unlock(lock, self.handle);
        Ok(())
    }

    fn oldest_pin(&self, roots: Range<u64>) -> io::Result<Option<u64>> {
        let mut machine = self.disk.machine();
        machine.check_power()?;
        Ok(machine.inode(self.inode)?.holders.oldest_pin(roots))
    }

    fn holder(&self, lock: Lock) -> Option<u32> {
        self.disk.machine().inode(self.inode).ok()?.holders.holder(lock)
    }

    fn is_linked(&self) -> io::Result<bool> {
        let machine = self.disk.machine();
        machine.check_power()?;
        Ok(machine.leads_to(&self.name(), self.inode))
    }

    fn may_have_other_names(&self) -> io::Result<bool> {
        let machine = self.disk.machine();
        machine.check_power()?;
        Ok(machine.count_names(self.inode) > 1)
    }

    fn renamed(&self, name: &str) {
        name.clone_into(&mut self.name());
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        if let Ok(inode) = self.disk.machine().inode(self.inode) {
            inode.handles -= 1;
            inode.holders.end(self.handle);
        }
    }
}
