//! The program `annals`.

#![cfg_attr(
    unix,
    allow(unsafe_code, reason = "only what runs before `main` sees a closed standard output")
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_cli::main(standard_output::is_open())
}

/// Standard output as the program was given it. Before `main`, the standard library replaces a closed descriptor with
/// `/dev/null`, where all output would be lost silently.
#[cfg(unix)]
mod standard_output {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_CLOSED: AtomicBool = AtomicBool::new(false);

    pub(super) fn is_open() -> bool {
        !IS_CLOSED.load(Ordering::Relaxed)
    }

    extern "C" fn look() {
        // SAFETY: the call only examines a descriptor, which need not be open.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        IS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }

    // SAFETY: the section holds functions that are called once, before `main`. This one needs nothing of the standard
    // library that is made later.
    #[used]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;
}

#[cfg(not(unix))]
mod standard_output {
    pub(super) const fn is_open() -> bool {
        true
    }
}
