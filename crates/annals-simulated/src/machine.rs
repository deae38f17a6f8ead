//! The state of a simulated disk, and the effects of operations.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::Rng;
use crate::fact::Fact;
use crate::inode::{Inode, LARGEST_FILE, SECTOR_SIZE};
use crate::plan::{Fault, FaultPlan, ReadFault, input_output, killed, no_space, power_off};
use annals_storage::implementing::check_fixed_len;

/// A disk with one directory, its plan of faults, and its transcript.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) seed: u64,
    pub(crate) inodes: BTreeMap<u64, Inode>,
    pub(crate) names: BTreeMap<String, Fact<Option<u64>>>,
    pub(crate) plan: FaultPlan,
    pub(crate) operations: u64,
    pub(crate) reads: u64,
    pub(crate) transcript: Vec<String>,
    pub(crate) is_off: bool,
    /// The process that does the next thing.
    pub(crate) acting: u64,
    dead: BTreeSet<u64>,
    next_process: u64,
    next_inode: u64,
    next_handle: u64,
    rng: Rng,
}

impl Machine {
    pub(crate) fn new(
        seed: u64,
        inodes: BTreeMap<u64, Inode>,
        names: BTreeMap<String, Fact<Option<u64>>>,
    ) -> Self {
        let next_inode = inodes.last_key_value().map_or(1, |(number, _)| number + 1);
        Self {
            seed,
            inodes,
            names,
            plan: FaultPlan::default(),
            operations: 0,
            reads: 0,
            transcript: Vec::new(),
            is_off: false,
            acting: 0,
            dead: BTreeSet::new(),
            next_process: 1,
            next_inode,
            next_handle: 1,
            rng: Rng::new(seed),
        }
    }

    /// Returns a copy without open files and faults.
    pub(crate) fn fork(&self) -> Self {
        let inodes = self.inodes.iter().map(|(number, inode)| (*number, inode.closed()));
        let mut fork = Self::new(self.seed, inodes.collect(), self.names.clone());
        fork.operations = self.operations;
        fork.reads = self.reads;
        fork.transcript.clone_from(&self.transcript);
        fork.is_off = self.is_off;
        fork
    }

    /// Fails if the power is off, or the process is dead.
    pub(crate) fn check_power(&self) -> io::Result<()> {
        match self.is_off {
            true => Err(power_off()),
            false if self.dead.contains(&self.acting) => Err(killed()),
            false => Ok(()),
        }
    }

    pub(crate) const fn new_process(&mut self) -> u64 {
        self.next_process += 1;
        self.next_process - 1
    }

    /// Returns the file of a name.
    pub(crate) fn lookup(&self, name: &str) -> io::Result<u64> {
        self.check_power()?;
        let inode = self.names.get(name).and_then(|binding| *binding.newest());
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Fails if a name is taken.
    pub(crate) fn check_free(&self, name: &str) -> io::Result<()> {
        match self.lookup(name) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns a file's name in the transcript: the one it was opened by if that still refers to it, else any other
    /// name.
    fn name_of(&self, inode: u64, opened_as: &str) -> String {
        if self.leads_to(opened_as, inode) {
            return opened_as.to_owned();
        }
        let other = self.names.iter().find(|(_, binding)| *binding.newest() == Some(inode));
        other.map_or_else(|| format!("{opened_as} (no longer linked)"), |(name, _)| name.clone())
    }

    pub(crate) fn leads_to(&self, name: &str, inode: u64) -> bool {
        self.names.get(name).is_some_and(|binding| *binding.newest() == Some(inode))
    }

    pub(crate) fn count_names(&self, inode: u64) -> usize {
        self.names.values().filter(|binding| *binding.newest() == Some(inode)).count()
    }

    pub(crate) fn inode(&mut self, number: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn new_handle(&mut self, inode: u64) -> u64 {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.handles += 1;
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        handle
    }

    /// Counts an operation and notes it down; returns when it happens, and how it fails if it does.
    fn begin(&mut self, line: String) -> io::Result<(u64, Option<Trouble>)> {
        self.check_power()?;
        let number = self.operations;
        self.operations += 1;
        let trouble = if self.plan.crash_at == Some(number) {
            self.is_off = true;
            Some(Trouble::Crash)
        } else if let Some((_, fault)) = self.plan.kill_at.filter(|(at, _)| *at == number) {
            self.dead.insert(self.acting);
            Some(Trouble::Fault(fault))
        } else {
            self.plan.fault_at(number).map(Trouble::Fault)
        };
        let note = match trouble {
            None => line,
            Some(Trouble::Crash) => format!("{line}: power off"),
            Some(Trouble::Fault(fault)) => format!("{line}: {}", describe(fault)),
        };
        self.transcript.push(note);
        Ok((number + 1, trouble))
    }

    /// Changes the directory. In a crash the change was issued, so it may have happened.
    pub(crate) fn change(
        &mut self,
        line: String,
        apply: impl FnOnce(&mut Self, u64) -> u64,
    ) -> io::Result<u64> {
        let (at, trouble) = self.begin(line)?;
        match trouble {
            None | Some(Trouble::Fault(Fault::SplitWrite { .. })) => Ok(apply(self, at)),
            Some(Trouble::Crash) => {
                apply(self, at);
                Err(power_off())
            }
            Some(Trouble::Fault(fault)) => Err(error_of(fault)),
        }
    }

    /// Binds a name to a file, or to none.
    pub(crate) fn bind(&mut self, at: u64, name: &str, inode: Option<u64>) {
        let unbound = || Fact::flushed(None);
        self.names.entry(name.to_owned()).or_insert_with(unbound).set(at, inode);
    }

    pub(crate) fn add_inode(&mut self, inode: Inode) -> u64 {
        let number = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(number, inode);
        number
    }

    pub(crate) fn flush_directory(&mut self) -> io::Result<()> {
        let (_, trouble) = self.begin("flush directory".to_owned())?;
        match trouble {
            None | Some(Trouble::Fault(Fault::SplitWrite { .. })) => {
                self.names.values_mut().for_each(Fact::flush);
                self.names.retain(|_, name| !name.is_certain() || name.newest().is_some());
                Ok(())
            }
            Some(Trouble::Crash) => Err(power_off()),
            Some(Trouble::Fault(fault)) => {
                if matches!(fault, Fault::FlushLoses | Fault::NoSpace) {
                    self.names.values_mut().for_each(Fact::fail_flush);
                }
                Err(error_of(fault))
            }
        }
    }

    pub(crate) fn read(&mut self, inode: u64, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.check_power()?;
        let number = self.reads;
        self.reads += 1;
        let fault = self.plan.read_fault_at(number);
        if fault == Some(ReadFault::Io) {
            return Err(input_output());
        }
        let count = self.inode(inode)?.read(offset, buffer);
        if fault == Some(ReadFault::BitFlip) {
            let bit = self.rng.index(count * 8);
            if let Some(byte) = buffer[..count].get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Ok(count)
    }

    pub(crate) fn write(
        &mut self,
        inode: u64,
        name: &str,
        offset: u64,
        data: &[u8],
    ) -> io::Result<()> {
        self.check_power()?;
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= LARGEST_FILE);
        let end = end.ok_or(io::ErrorKind::FileTooLarge)?;
        let line = format!("write {} {offset}..{end}", self.name_of(inode, name));
        let (at, trouble) = self.begin(line)?;
        let room = self.room_for(inode);
        let fits = usize::try_from(room.saturating_sub(offset)).unwrap_or(usize::MAX);
        let part = &data[..fits.min(data.len())];
        let file = self.inode(inode)?;
        match trouble {
            None => file.write(at, offset, part)?,
            Some(Trouble::Crash) => {
                file.write(at, offset, part)?;
                return Err(power_off());
            }
            Some(Trouble::Fault(Fault::SplitWrite { bytes })) => {
                let (first, _) = part.split_at(bytes.min(part.len()));
                file.write(at, offset, first)?;
                file.write(at, offset, part)?;
            }
            Some(Trouble::Fault(fault)) => {
                if let Fault::ShortWrite { bytes } = fault {
                    file.write(at, offset, &part[..bytes.min(part.len())])?;
                }
                return Err(error_of(fault));
            }
        }
        if part.len() < data.len() {
            self.note_full_disk();
            return Err(no_space());
        }
        Ok(())
    }

    pub(crate) fn set_len(&mut self, inode: u64, name: &str, len: u64) -> io::Result<()> {
        self.check_power()?;
        if len > LARGEST_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = self.inode(inode)?;
        if file.is_device {
            return check_fixed_len(file.len(), len);
        }
        let line = format!("set_len {} {len}", self.name_of(inode, name));
        let (at, trouble) = self.begin(line)?;
        let fits = len <= self.room_for(inode).max(self.inode(inode)?.len());
        match trouble {
            None | Some(Trouble::Fault(Fault::SplitWrite { .. })) if fits => {
                self.inode(inode)?.set_len(at, len)
            }
            None | Some(Trouble::Fault(Fault::SplitWrite { .. })) => {
                self.note_full_disk();
                Err(no_space())
            }
            Some(Trouble::Crash) => {
                if fits {
                    self.inode(inode)?.set_len(at, len)?;
                }
                Err(power_off())
            }
            Some(Trouble::Fault(fault)) => Err(error_of(fault)),
        }
    }

    pub(crate) fn flush(&mut self, inode: u64, name: &str) -> io::Result<()> {
        self.check_power()?;
        let line = format!("flush {}", self.name_of(inode, name));
        let (_, trouble) = self.begin(line)?;
        let file = self.inode(inode)?;
        match trouble {
            None | Some(Trouble::Fault(Fault::SplitWrite { .. })) => {
                file.flush();
                Ok(())
            }
            Some(Trouble::Crash) => Err(power_off()),
            Some(Trouble::Fault(fault)) => {
                if matches!(fault, Fault::FlushLoses | Fault::NoSpace) {
                    file.fail_flush();
                }
                Err(error_of(fault))
            }
        }
    }

    fn note_full_disk(&mut self) {
        if let Some(line) = self.transcript.last_mut() {
            line.push_str(": no space");
        }
    }

    /// Returns the length up to which a file may be written.
    fn room_for(&self, inode: u64) -> u64 {
        if let Some(device) = self.inodes.get(&inode).filter(|inode| inode.is_device) {
            return device.len();
        }
        let Some(space) = self.plan.space_at(self.operations) else { return u64::MAX };
        let named = |number: u64| self.names.values().any(|name| *name.newest() == Some(number));
        let others = self.inodes.iter().filter(|(number, file)| {
            **number != inode && !file.is_device && (file.handles > 0 || named(**number))
        });
        let taken: u64 = others.map(|(_, file)| file.space()).sum();
        let own = self.inodes.get(&inode).map_or(0, Inode::space);
        let sector = SECTOR_SIZE as u64;
        own.max(space.saturating_sub(taken) / sector * sector)
    }
}

/// The outcome of an operation that doesn't just succeed.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Crash,
    Fault(Fault),
}

fn error_of(fault: Fault) -> io::Error {
    match fault {
        Fault::NoSpace => no_space(),
        _ => input_output(),
    }
}

fn describe(fault: Fault) -> String {
    match fault {
        Fault::Io => "input/output error".to_owned(),
        Fault::NoSpace => "no space".to_owned(),
        Fault::ShortWrite { bytes } => format!("only {bytes} bytes, then an input/output error"),
        Fault::SplitWrite { bytes } => format!("in two parts, the first of {bytes} bytes"),
        Fault::FlushLoses => "failed, and dropped what it should have covered".to_owned(),
    }
}
