//! The tokens of a database: their hashes in a file beside it, which never leaves the machine.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use annals::storage::{Clock, SystemClock};
use annals::{Error, Result, Timestamp};
use annals_storage::{Access, Directory};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Role;

/// What precedes the random part of a token, so that people and scanners of secrets recognise one.
const PREFIX: &str = "annals_";

/// The tokens of a database, in the file `NAME-tokens` beside it: a line of JSON for each, without the token itself.
#[derive(Debug)]
pub struct Tokens {
    directory: std::sync::Arc<dyn Directory>,
    name: String,
    changing: Mutex<()>,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// A short name to revoke it by.
    pub id: String,
    /// `read`, `write` or `admin`.
    pub role: String,
    /// When it ends, as an RFC 3339 text; `None`: never.
    pub until: Option<String>,
    /// The SHA-256 hash of the token, as hexadecimal digits.
    hash: String,
}

/// The lines of a file of tokens.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) tokens: Vec<StoredToken>,
    /// The numbers of those that aren't tokens.
    pub(crate) wrong: Vec<usize>,
}

/// A token that was just made: this is the only time that it is known.
#[derive(Debug)]
pub struct NewToken {
    /// The text that a client sends.
    pub token: String,
    /// What is kept of it.
    pub stored: StoredToken,
}

impl NewToken {
    /// Makes a random token.
    #[must_use]
    pub fn random(role: Role, until: Option<Timestamp>) -> Self {
        let mut token = PREFIX.to_owned();
        for part in [SystemClock.secret(), SystemClock.secret()] {
            part.iter().for_each(|byte| push_hex(&mut token, *byte));
        }
        let hash = hash(&token);
        let id = hash.chars().take(8).collect();
        let (role, until) = (role.name().to_owned(), until.map(|until| until.to_string()));
        Self { token, stored: StoredToken { id, role, until, hash } }
    }
}

fn push_hex(text: &mut String, byte: u8) {
    // Writing to a string doesn't fail.
    let _ = write!(text, "{byte:02x}");
}

/// Returns the hash of a token. It has 256 random bits, so a slow hash would protect no better.
pub(crate) fn hash(token: &str) -> String {
    let mut text = String::new();
    Sha256::digest(token.as_bytes()).iter().for_each(|byte| push_hex(&mut text, *byte));
    text
}

impl StoredToken {
    /// Returns the role that a text gives now, if it is this token.
    #[must_use]
    pub fn role_of(&self, token: &str, now: Timestamp) -> Option<Role> {
        self.role_of_hash(&hash(token), now)
    }

    /// False if no text could ever be this token: a part of it can't be read.
    fn can_be_valid(&self) -> bool {
        let Self { role, until, hash, .. } = self;
        let is_hash = hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit());
        let is_time = until.as_ref().is_none_or(|it| Timestamp::from_str(it).is_ok());
        Role::from_str(role).is_ok() && is_time && is_hash
    }

    /// Returns the role that a token with a hash gives now, if it is this one.
    pub(crate) fn role_of_hash(&self, hash: &str, now: Timestamp) -> Option<Role> {
        // Hashes are compared: how long that takes says nothing of the token.
        let is_valid = match &self.until {
            None => true,
            Some(until) => Timestamp::from_str(until).is_ok_and(|until| now < until),
        };
        (self.hash == hash && is_valid).then(|| Role::from_str(&self.role).ok()).flatten()
    }
}

impl Tokens {
    /// Returns the tokens of the database at a path. Reads nothing yet.
    ///
    /// # Errors
    /// `Invalid`: it can't be the path of a file; `Io`.
    pub fn of(database: impl AsRef<Path>) -> Result<Self> {
        let (directory, name) = annals::internals::locate(database.as_ref())?;
        let io = |error| {
            Error::io(format!("{}: can't look for the database", directory.display(&name)), error)
        };
        let permissions = directory.permissions(&name).map_err(io)?;
        // Nobody else may read hashes of tokens.
        let private = permissions.map(annals_storage::Permissions::private);
        let name = format!("{name}-tokens");
        let directory = directory.for_journal(&name, private).unwrap_or(directory);
        Ok(Self { directory, name, changing: Mutex::default() })
    }

    /// Returns the path of the file, as messages show it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.directory.display(&self.name))
    }

    /// Returns all tokens; none if there is no file.
    ///
    /// # Errors
    /// `Io`; `Invalid`: a line isn't a token.
    pub fn list(&self) -> Result<Vec<StoredToken>> {
        let Lines { tokens, wrong } = self.read()?;
        match wrong.first() {
            None => Ok(tokens),
            Some(line) => {
                let shown = self.directory.display(&self.name);
                Err(Error::invalid(format!(
                    "{shown}, line {line}: isn't a token; remove that line"
                )))
            }
        }
    }

    /// Returns all tokens, and which lines are none.
    pub(crate) fn read(&self) -> Result<Lines> {
        let shown = self.directory.display(&self.name);
        let io = |error| Error::io(format!("{shown}: can't read the tokens"), error);
        let file = match self.directory.open(&self.name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lines::default()),
            file => file.map_err(io)?,
        };
        let mut lines = Lines::default();
        let mut bytes = vec![0; usize::try_from(file.len().map_err(io)?).unwrap_or(0)];
        let read = file.read_at(0, &mut bytes).map_err(io)?;
        bytes.truncate(read);
        let text = String::from_utf8_lossy(&bytes);
        for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line).ok().filter(StoredToken::can_be_valid) {
                Some(token) => lines.tokens.push(token),
                None => lines.wrong.push(place + 1),
            }
        }
        Ok(lines)
    }

    /// Adds a token.
    ///
    /// # Errors
    /// Those of [`list`](Self::list); `Io`: the file can't be written.
    pub fn add(&self, token: &StoredToken) -> Result<()> {
        self.change(|tokens| tokens.push(token.clone()))
    }

    /// Removes a token by its id; returns true if there was one.
    ///
    /// # Errors
    /// Those of [`list`](Self::list); `Io`: the file can't be written.
    pub fn revoke(&self, id: &str) -> Result<bool> {
        let mut found = false;
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            found = tokens.len() != before;
        })?;
        Ok(found)
    }

    /// Replaces the file, so that a crash leaves the old one or the new one.
    fn change(&self, change: impl FnOnce(&mut Vec<StoredToken>)) -> Result<()> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = self.list()?;
        change(&mut tokens);
        let mut text = String::new();
        for token in &tokens {
            let line = serde_json::to_string(token);
            text += &line
                .map_err(|error| Error::invalid(format!("a token can't be written: {error}")))?;
            text.push('\n');
        }
        let shown = self.directory.display(&self.name);
        let io = |error| Error::io(format!("{shown}: can't write the tokens"), error);
        let temporary = format!("{}.new-{:016x}", self.name, SystemClock.random());
        let file = self.directory.create(&temporary).map_err(io)?;
        let written = file
            .write_at(0, text.as_bytes())
            .and_then(|()| file.flush())
            .and_then(|()| self.directory.rename(&temporary, &self.name))
            .and_then(|()| self.directory.flush());
        written.map_err(|error| {
            let _ = self.directory.remove(&temporary);
            io(error)
        })
    }
}
