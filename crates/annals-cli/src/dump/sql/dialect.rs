//! The differences between SQLite and PostgreSQL, and one text for both.
//!
//! PostgreSQL's comments nest; SQLite's end at the first `*/`. So in
//!
//! ```text
//! /*/**/ONE/**/--*/OTHER
//! ```
//!
//! SQLite sees a comment, `ONE`, a comment, and a comment up to the end of the line; PostgreSQL sees a comment
//! with two others in it, then `OTHER`. `ONE` may hold no `/*` and no `*/`, `OTHER` no line feed.

use clap::ValueEnum;

/// The database that reads the SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// SQLite and PostgreSQL, one text
    Both,
    /// SQLite
    Sqlite,
    /// PostgreSQL
    Postgres,
}

/// Between the comment that both skip and the part that only SQLite reads.
const BEFORE: &str = "/*/**/";
/// Between that and the part that only PostgreSQL reads, up to the end of the line.
const BETWEEN: &str = "/**/--*/";

/// A part of a value that is too long to be at hand.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Text(&'static str),
    /// The hexadecimal digits are here.
    Digits,
}

impl Part {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Text(text) => text,
            Self::Digits => "",
        }
    }
}

impl Dialect {
    /// Returns the text for each.
    pub(crate) fn choose(self, sqlite: &str, postgres: &str) -> String {
        match self {
            Self::Sqlite => sqlite.to_owned(),
            Self::Postgres => postgres.to_owned(),
            Self::Both if sqlite == postgres => sqlite.to_owned(),
            Self::Both => format!("{BEFORE}{sqlite}{BETWEEN}{postgres}\n"),
        }
    }

    /// Returns the parts of a literal of hexadecimal digits. The arguments are the text before and after the digits,
    /// for each dialect.
    pub(super) fn parts(
        self,
        sqlite: &'static str,
        sqlite_end: &'static str,
        postgres: &'static str,
        postgres_end: &'static str,
    ) -> Vec<Part> {
        let texts = |start, end| [Part::Text(start), Part::Digits, Part::Text(end)];
        let (sqlite, postgres) = (texts(sqlite, sqlite_end), texts(postgres, postgres_end));
        match self {
            Self::Sqlite => sqlite.to_vec(),
            Self::Postgres => postgres.to_vec(),
            Self::Both => {
                let mut parts = vec![Part::Text(BEFORE)];
                parts.extend(sqlite);
                parts.push(Part::Text(BETWEEN));
                parts.extend(postgres);
                parts.push(Part::Text("\n"));
                parts
            }
        }
    }
}
