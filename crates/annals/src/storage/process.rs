//! Other processes.

#![cfg_attr(unix, allow(unsafe_code, reason = "the system is asked whether a process lives"))]

/// Tells whether there is a process of this number, for messages: it may be another by now, or one
/// that lives where this system can't see it. Where the system isn't asked (not on Unix), it tells
/// that there is one.
pub(crate) fn is_alive(pid: u32) -> bool {
    system::is_alive(pid)
}

#[cfg(unix)]
mod system {
    pub(super) fn is_alive(pid: u32) -> bool {
        // 0 and what would be negative stand for groups of processes.
        let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else {
            return false;
        };
        // SAFETY: signal 0 is none: the call only looks whether one could be sent.
        let result = unsafe { libc::kill(pid, 0) };
        // One that belongs to somebody else may not be sent signals, but is there.
        result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn is_alive(_pid: u32) -> bool {
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ended() {
        assert!(is_alive(std::process::id()));
        assert!(is_alive(1), "somebody else's");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(!is_alive(pid));
        for absurd in [0, u32::MAX, 1 << 31] {
            assert!(!is_alive(absurd), "{absurd}");
        }
    }
}
