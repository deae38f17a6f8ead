//! Who may do what.

use std::fmt;
use std::str::FromStr;

/// What a token allows. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reading all: rows, history, frames.
    Read,
    /// Also pushing transactions.
    Write,
    /// Also what concerns the server itself: its metrics.
    Admin,
}

impl Role {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Read, Self::Write, Self::Admin]
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("{text:?} isn't a role: write read, write or admin"))
    }
}
