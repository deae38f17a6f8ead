//! Which engine writes the batches of a file.

use std::fs::File;
use std::io;

use super::batch::{Batched, Engine, Run, write_one_by_one};
use super::positioned;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use super::uring::Uring;
#[cfg(target_os = "linux")]
use super::vectored;

/// The engine for the batches of one file, and what is known about it.
#[derive(Debug, Default)]
pub(super) struct Engines {
    /// For tests and benchmarks: this one, whatever would be best.
    forced: Option<Engine>,
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    uring: Uring,
}

impl Engines {
    pub(super) fn new(forced: Option<Engine>) -> Self {
        Self {
            forced,
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            uring: Uring::default(),
        }
    }

    /// Writes a batch with the best available engine.
    pub(super) fn write(&self, file: &File, runs: &[Run<'_>]) -> io::Result<Batched> {
        if self.forced.is_none_or(|engine| engine == Engine::Uring)
            && let Some(batched) = self.by_ring(file, runs)
        {
            return batched;
        }
        #[cfg(target_os = "linux")]
        if self.forced != Some(Engine::OneByOne) {
            return vectored::write(file, runs);
        }
        write_one_by_one(runs, |offset, data| positioned::write(file, offset, data))
    }

    /// Returns nothing if there is no ring, or none is wanted: then any writes that were begun have ended, and may be
    /// repeated.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn by_ring(&self, file: &File, runs: &[Run<'_>]) -> Option<io::Result<Batched>> {
        self.uring.write(file, runs, self.forced.is_some())
    }

    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    #[expect(clippy::unused_self, reason = "elsewhere it knows whether there is a ring")]
    fn by_ring(&self, _file: &File, _runs: &[Run<'_>]) -> Option<io::Result<Batched>> {
        None
    }
}
