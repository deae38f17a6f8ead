//! Files, devices, directories, locks, the clock and randomness, as a database takes them: of a real machine or in
//! memory.

pub use annals_storage::{
    Access, Batched, Clock, Directory, Engine, FileDirectory, Hold, Interrupts, LONGEST_RUN, Lock,
    MOST_PARTS, MemoryDirectory, Permissions, Run, Storage, SystemClock, ignore_file_size_signal,
    join, lower_priority, most_open_files, raise_most_open_files, return_freed_memory,
};

pub(crate) use annals_storage::{Origin, is_alive, is_same_file, memory_for_pages};
