//! Calls that a signal interrupted are made again: that is no error, and doesn't get further up.
//!
//! The standard library does so itself when it opens, flushes, or sets a length. For the others the caller handles
//! it, though only unusual file systems (on the network, or in a process) let a signal interrupt them.

use std::io;

/// Makes a call until it isn't interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interruption_is_a_reason_to_call_again() {
        let mut calls = 0;
        let mut results = vec![
            Err(io::ErrorKind::NotFound.into()),
            Ok(7),
            Err(io::ErrorKind::Interrupted.into()),
            Err(io::ErrorKind::Interrupted.into()),
        ];
        let mut next = || {
            calls += 1;
            results.pop().unwrap()
        };
        assert_eq!(retry(&mut next).unwrap(), 7);
        assert_eq!(retry(&mut next).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(calls, 4);
    }
}
