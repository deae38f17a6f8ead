//! The simulated disk as a directory, and the controls of the simulation.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fact::Fact;
use crate::inode::Inode;
use crate::machine::Machine;
use crate::plan::{Fault, ReadFault};
use annals_storage::implementing::{check_lockable, check_name, check_writable};
use annals_storage::{Access, Directory, Hold, Lock, Storage};

/// The step before an operation.
type Interruption = Box<dyn FnOnce() + Send>;

/// A simulated disk with one directory; a clone is another handle of the same disk, in the same
/// process.
///
/// *Operations* change something: writes, changes of length, flushes, and changes of names. They are counted from 0,
/// and each has one line in the transcript. A crash at anything else has the same effects as one at the next
/// operation. Operations that fail by themselves, because a name is missing or taken, aren't counted. Reads are
/// counted separately.
#[derive(Clone)]
pub struct SimulatedDisk {
    machine: Arc<Mutex<Machine>>,
    interruption: Arc<Mutex<Option<(u64, Interruption)>>>,
    /// The process whose handle this is.
    process: u64,
}

impl SimulatedDisk {
    /// Makes an empty disk without faults. The seed determines all that is random.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::from_machine(Machine::new(seed, BTreeMap::new(), BTreeMap::new()))
    }

    pub(crate) fn from_machine(machine: Machine) -> Self {
        Self { machine: Arc::new(Mutex::new(machine)), interruption: Arc::default(), process: 0 }
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.acting = self.process;
        machine
    }

    /// Applies the plan for the next operation, if there is one.
    pub(crate) fn interrupt(&self) {
        let mut interruption = self.interruption.lock().unwrap_or_else(PoisonError::into_inner);
        let operations = self.machine().operations;
        let now = interruption.take_if(|(operation, _)| *operation <= operations);
        drop(interruption);
        if let Some((_, act)) = now {
            act();
        }
    }

    /// Returns a handle of the same disk in another process, which may be [killed](Self::kill_at) alone.
    #[must_use]
    pub fn process(&self) -> Self {
        let process = self.machine().new_process();
        Self { process, ..self.clone() }
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.machine().seed
    }

    /// Returns how many operations there have been: the number that the next one has.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.machine().operations
    }

    /// Returns how many reads there have been: the number that the next one has.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.machine().reads
    }

    /// Returns the operations so far, one line for each, such as `write journal 512..1024`.
    #[must_use]
    pub fn transcript(&self) -> String {
        let mut text = self.machine().transcript.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Clears the transcript, but not the count of operations.
    pub fn clear_transcript(&self) {
        self.machine().transcript.clear();
    }

    /// Makes the power go off at an operation: it fails, as does everything after it, with an error that
    /// [`is_power_off`](super::is_power_off) recognizes. Unless it is a flush, it was issued, so it may have
    /// happened, wholly or in part.
    pub fn crash_at(&self, operation: u64) {
        self.machine().plan.crash_at = Some(operation);
    }

    /// Makes the power go off now.
    pub fn crash(&self) {
        self.machine().is_off = true;
    }

    /// True if the power is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.machine().is_off
    }

    /// Returns a copy of the machine after the death of all processes: their writes are visible, and on the disk or
    /// not, as before; no file is open, and nothing is planned. The counts and the transcript continue from these.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::from_machine(self.machine().fork())
    }

    /// Makes one operation fail.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.machine().plan.add(operation, fault);
    }

    /// Makes an operation and all after it fail.
    pub fn fail_from(&self, operation: u64, fault: Fault) {
        self.machine().plan.add_from(operation, fault);
    }

    /// Makes the process of this operation die: it fails in this way, and so do all later operations of the process.
    /// Its locks go with its handles. Other processes continue.
    pub fn kill_at(&self, operation: u64, fault: Fault) {
        self.machine().plan.kill_at = Some((operation, fault));
    }

    /// Does something right before an operation, as another process might.
    pub fn interrupt_at(&self, operation: u64, act: impl FnOnce() + Send + 'static) {
        let interruption = Some((operation, Box::new(act) as Interruption));
        *self.interruption.lock().unwrap_or_else(PoisonError::into_inner) = interruption;
    }

    /// Makes one read fail.
    pub fn fail_read_at(&self, read: u64, fault: ReadFault) {
        self.machine().plan.add_read(read, fault);
    }

    /// Drops all plans: pending faults, a crash and a limit of space.
    pub fn clear_plan(&self) {
        self.machine().plan.clear();
    }

    /// Limits all files together to this many bytes, in whole sectors. A write that doesn't fit is written as far as
    /// it does. Files without name and handle take no space.
    pub fn limit_space(&self, bytes: u64) {
        self.machine().plan.space = Some(bytes);
    }

    /// Makes the disk full during this many operations: no file can grow.
    pub fn fill_at(&self, operation: u64, count: u64) {
        self.machine().plan.fill(operation..operation.saturating_add(count));
    }

    /// Ends the limit of space.
    pub fn free_space(&self) {
        self.machine().plan.space = None;
    }

    /// Returns the whole content of a file as reads see it, also when the power is off; `None` if there
    /// is no file of that name.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let machine = self.machine();
        let inode = (*machine.names.get(name)?.newest())?;
        let inode = machine.inodes.get(&inode)?;
        let mut content = vec![0; usize::try_from(inode.len()).ok()?];
        inode.read(0, &mut content);
        Some(content)
    }

    /// Puts a file on the disk, flushed with its name, in place of any other of that name: for
    /// tests that start from a file or damage one. It isn't an operation.
    ///
    /// # Errors
    /// If the content is larger than any simulated file may be.
    pub fn install(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.put(name, content, false)
    }

    /// Adds a raw device to the files: its length is fixed, and it has old contents. Limits of space don't concern
    /// it.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn install_device(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.put(name, content, true)
    }

    fn put(&self, name: &str, content: &[u8], is_device: bool) -> io::Result<()> {
        check_name(name)?;
        let mut inode = Inode::new();
        inode.write(0, 0, content)?;
        inode.flush();
        inode.is_device = is_device;
        let mut machine = self.machine();
        let number = machine.add_inode(inode);
        machine.names.insert(name.to_owned(), Fact::flushed(Some(number)));
        Ok(())
    }

    fn handle(&self, inode: u64, name: &str, access: Access) -> Arc<dyn Storage> {
        let handle = self.machine().new_handle(inode);
        let name = Mutex::new(name.to_owned());
        Arc::new(SimulatedFile { disk: self.clone(), inode, name, access, handle })
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.machine();
        f.debug_struct("SimulatedDisk")
            .field("seed", &machine.seed)
            .field("operations", &machine.operations)
            .field("is_off", &machine.is_off)
            .finish_non_exhaustive()
    }
}

impl Directory for SimulatedDisk {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Storage>> {
        check_name(name)?;
        let inode = self.machine().lookup(name)?;
        Ok(self.handle(inode, name, access))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        check_name(name)?;
        self.interrupt();
        let mut machine = self.machine();
        machine.check_free(name)?;
        let inode = machine.change(format!("create {name}"), |machine, at| {
            let inode = machine.add_inode(Inode::new());
            machine.bind(at, name, Some(inode));
            inode
        })?;
        drop(machine);
        Ok(self.handle(inode, name, Access::Write))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.interrupt();
        let mut machine = self.machine();
        let inode = machine.lookup(from)?;
        machine.check_free(to)?;
        machine.change(format!("link {from} {to}"), |machine, at| {
            machine.bind(at, to, Some(inode));
            inode
        })?;
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        self.interrupt();
        let mut machine = self.machine();
        let inode = machine.lookup(from)?;
        machine.change(format!("rename {from} {to}"), |machine, at| {
            // As in POSIX: two names of one file are unchanged.
            if !machine.leads_to(to, inode) {
                machine.bind(at, to, Some(inode));
                machine.bind(at, from, None);
            }
            inode
        })?;
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.interrupt();
        let mut machine = self.machine();
        let inode = machine.lookup(name)?;
        machine.change(format!("remove {name}"), |machine, at| {
            machine.bind(at, name, None);
            inode
        })?;
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let machine = self.machine();
        machine.check_power()?;
        let bound = machine.names.iter().filter(|(_, binding)| binding.newest().is_some());
        Ok(bound.map(|(name, _)| name.clone()).collect())
    }

    fn flush(&self) -> io::Result<()> {
        self.interrupt();
        self.machine().flush_directory()
    }

    fn again(&self) -> Arc<dyn Directory> {
        Arc::new(self.clone())
    }

    fn display(&self, name: &str) -> String {
        format!("simulated:{name}")
    }
}

/// One handle, which owns the locks taken through it.
#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    inode: u64,
    name: Mutex<String>,
    access: Access,
    handle: u64,
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
