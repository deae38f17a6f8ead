//! The simulated disk: the possible contents after a power cut, bit by bit.
//!
//! A disk has guarantees only for flushed data. Of everything else any part may have reached it, in any order. The
//! simulation keeps for each *fact* on the disk all the values it had since its last completed flush. After a crash
//! each fact holds any of them, independently of the others:
//!
//! * **sectors**: each 512 bytes of a file hold any content they had since the file's last flush;
//!   one that never held anything reads as zeros;
//! * **lengths**: a file has any length it had since its last flush; bytes beyond are lost;
//! * **names**: each name refers to any file it referred to (or to none) since the directory's last flush. Flushing a
//!   file doesn't flush its name. A rename is two facts: it may leave both names, or neither.
//!
//! A flush that [fails](Fault::FlushLoses) leaves its facts open permanently: reads continue to return the newest
//! values, but a later successful flush covers only values that were written again.
//!
//! Invariants:
//!
//! 1. Reads return the newest values, whatever is on the disk, until the power goes off.
//! 2. A completed flush leaves one value to each fact that it covers, the newest.
//! 3. Past a file's newest length the newest content of every sector is zeros.
//! 4. The same seed, plan and calls give the same disk, the same transcript and the same errors.
//!
//! ```
//! use annals_simulated::{Rng, SimulatedDisk};
//! use annals_storage::{Access, Directory};
//!
//! let disk = SimulatedDisk::new(1);
//! let file = disk.create("journal")?;
//! disk.flush()?;
//! file.write_at(0, b"safe")?;
//! file.flush()?;
//! file.write_at(512, b"in the air")?;
//!
//! let states = disk.crash_states();
//! // The new length reached the disk or not; if it did, the new sector did or not.
//! assert_eq!(states.count(), Some(3));
//! for disk in states.every() {
//!     let mut start = [0; 4];
//!     disk.open("journal", Access::Read)?.read_at(0, &mut start)?;
//!     assert_eq!(&start, b"safe");
//! }
//! let one_of_them = states.random(&mut Rng::new(1));
//! # Ok::<(), std::io::Error>(())
//! ```

mod clock;
mod crash;
mod disk;
pub mod document;
mod fact;
mod inode;
mod machine;
mod plan;
mod rng;

pub use clock::SimulatedClock;
pub use crash::{CrashStates, EveryState};
pub use disk::SimulatedDisk;
pub use inode::{LARGEST_FILE, SECTOR_SIZE};
pub use plan::{Fault, PowerOff, ReadFault, is_power_off};
pub use rng::Rng;
