//! A connection of SQLite over a database, with SQLite compiled in.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use annals::{Error, Result, Schema, Snapshot};
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::ffi::ErrorCode;
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Batch, Statement};

use crate::attach::Attaching;
use crate::error::SqlError;
use crate::functions::{self, Find};
use crate::host::{survive_forks, unreadable};
use crate::limits::{Ended, Limits, Watch, confine, keep, keep_in_memory};
use crate::session::{Session, Source};
use crate::shape::Tables;

/// The values of the parameters of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Parameters {
    /// There are none.
    #[default]
    None,
    /// Those of `?` and `?1`, in order.
    Listed(Vec<Value>),
    /// Those of `:name`, `@name` or `$name`, by their names.
    Named(Vec<(String, Value)>),
}

impl<const N: usize> From<[Value; N]> for Parameters {
    fn from(values: [Value; N]) -> Self {
        Self::Listed(values.into())
    }
}

/// The receiver of an answer.
pub trait Answer {
    /// Gets the names of the columns, and the types that they are declared with if they are columns of a table.
    ///
    /// # Errors
    /// The answer can't be taken: the statement ends.
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError>;

    /// Gets a row.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError>;

    /// Notes the end of the rows.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    fn end(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// How many bytes the indexes take that a statement makes for itself, without limits.
const TRANSIENTS: u64 = 256 << 20;

/// A connection over a database. It is for one thread at a time.
#[derive(Debug)]
pub struct Connection {
    inner: rusqlite::Connection,
    session: Arc<Session>,
    schema: Arc<Schema>,
    /// The virtual tables that SQLite can't have, and why.
    left_out: Vec<(String, String)>,
    limits: Option<Limits>,
    watch: Watch,
}

impl Connection {
    /// Opens a connection that may also have temporary tables and views of its own, and other files of SQLite.
    ///
    /// Cost: some 20 us for each table.
    ///
    /// # Errors
    /// The schema can't be shown to SQLite.
    pub fn open(source: impl Into<Source>) -> Result<Self, SqlError> {
        Self::new(source.into(), None)
    }

    /// Opens a connection for statements of others: they can only read, and end at the limits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn confined(source: impl Into<Source>, limits: Limits) -> Result<Self, SqlError> {
        Self::new(source.into(), Some(limits))
    }

    fn new(source: Source, limits: Option<Limits>) -> Result<Self, SqlError> {
        let failed = |error| SqlError::Statement(said(error));
        let most = limits.map_or(TRANSIENTS, |limits| limits.memory / 16);
        let session = Arc::new(Session::new(source, usize::try_from(most).unwrap_or(usize::MAX)));
        let schema = Arc::clone(session.snapshot(true)?.schema());
        survive_forks();
        let inner = rusqlite::Connection::open_in_memory().map_err(failed)?;
        // A misspelt column in double quotes is an error, not a text.
        for config in [DbConfig::SQLITE_DBCONFIG_DQS_DML, DbConfig::SQLITE_DBCONFIG_DQS_DDL] {
            inner.set_db_config(config, false).map_err(failed)?;
        }
        let (left_out, watch) = (Vec::new(), Watch::default());
        let mut connection = Self { inner, session, schema, left_out, limits, watch };
        if let Some(limits) = limits {
            keep_in_memory(&connection.inner).map_err(failed)?;
            connection.watch.install(&mut connection.inner, limits).map_err(failed)?;
        }
        let session = Arc::clone(&connection.session);
        let find: Find = Arc::new(move |prefix| prefix.is_empty().then(|| Arc::clone(&session)));
        functions::register(&connection.inner, &find).map_err(failed)?;
        connection.attach()?;
        connection.guard()?;
        Ok(connection)
    }

    fn attach(&mut self) -> Result<(), SqlError> {
        let Self { session, schema, .. } = &*self;
        let attaching = Attaching { session, schema, prefix: "", label: "annals" };
        let attached = attaching.attach(&self.inner);
        self.left_out = attached.map_err(|error| SqlError::Statement(said(error)))?.left_out;
        Ok(())
    }

    /// Keeps statements from opening other files, to read or to write them: ATTACH and VACUUM INTO.
    ///
    /// # Errors
    /// SQLite doesn't take the limit.
    pub fn refuse_files(&self) -> Result<(), SqlError> {
        let set = self.inner.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0);
        set.map(drop).map_err(|error| SqlError::Statement(said(error)))
    }

    /// Returns SQLite's connection, for prepared statements. Statements that are run on it see the newest snapshot,
    /// but a changed schema is an error until [`run`](Self::run) notices it.
    #[must_use]
    pub const fn inner(&self) -> &rusqlite::Connection {
        &self.inner
    }

    /// Returns the limits; those of a connection that isn't confined are the usual ones, and nothing ends at them.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits.unwrap_or_default()
    }

    /// Ends the statements of a confined connection as soon as this is true: nobody waits for the answer any more.
    pub fn end_when(&self, gone: Arc<AtomicBool>) {
        self.watch.end_when(gone);
    }

    /// Returns SQLite's connection, for its hooks.
    #[must_use]
    pub const fn inner_mut(&mut self) -> &mut rusqlite::Connection {
        &mut self.inner
    }

    /// Returns the snapshot that the next statement sees.
    ///
    /// # Errors
    /// The database can't be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.session.snapshot(self.inner.is_autocommit())
    }

    /// Runs statements, one after the other; the parameters are those of each.
    ///
    /// # Errors
    /// Of the first one that fails; the answers of those before it were given.
    pub fn run(
        &mut self,
        sql: &str,
        parameters: &Parameters,
        answer: &mut dyn Answer,
    ) -> Result<(), SqlError> {
        // SQLite would take the rest for no part of it.
        if let Some(place) = sql.find('\0') {
            return Err(SqlError::Statement(format!(
                "the character NUL is in the statement, at byte {place}: write char(0) for it in a text"
            )));
        }
        self.refresh()?;
        if let Some(limits) = self.limits {
            self.watch.begin(limits);
        }
        let mut batch = Batch::new(&self.inner, sql);
        loop {
            let statement = batch.next().map_err(|error| self.explain(error))?;
            let Some(mut statement) = statement else { return Ok(()) };
            if self.inner.is_autocommit() {
                self.session.release();
            }
            self.bind(&mut statement, parameters)?;
            self.answer(&mut statement, answer)?;
            if !self.inner.is_autocommit() {
                // From BEGIN on the transaction sees this state.
                self.session.snapshot(false)?;
            }
        }
    }

    /// Returns all rows of statements.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn rows(
        &mut self,
        sql: &str,
        parameters: &Parameters,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        struct Collected(Vec<Vec<Value>>);
        impl Answer for Collected {
            fn begin(&mut self, _: &[(String, Option<String>)]) -> Result<(), SqlError> {
                Ok(())
            }
            fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
                let owned = values.iter().map(|&value| Value::try_from(value));
                self.0.push(owned.collect::<std::result::Result<_, _>>().map_err(not_utf8)?);
                Ok(())
            }
        }
        let mut collected = Collected(Vec::new());
        self.run(sql, parameters, &mut collected)?;
        Ok(collected.0)
    }

    /// Shows SQLite a schema that has changed.
    fn refresh(&mut self) -> Result<(), SqlError> {
        if !self.inner.is_autocommit() {
            return Ok(());
        }
        self.session.release();
        let now = self.session.snapshot(true)?;
        if Arc::ptr_eq(now.schema(), &self.schema) || **now.schema() == *self.schema {
            return Ok(());
        }
        self.schema = Arc::clone(now.schema());
        // The rule that changes nothing is for statements of others.
        let none = None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>;
        self.inner.authorizer(none).map_err(|error| SqlError::Statement(said(error)))?;
        self.attach()?;
        self.guard()
    }

    /// Sets what statements may do.
    fn guard(&mut self) -> Result<(), SqlError> {
        let guarded = match &self.limits {
            Some(limits) => confine(&mut self.inner, limits),
            None => {
                // The log isn't among them: a statement that changes nothing of it tells of the end of a transaction.
                let names = Tables::of(&self.schema, "").all.into_iter().map(|table| table.name);
                let names = names.chain(["annals_schema".to_owned()]);
                keep(&mut self.inner, names.map(|name| name.to_ascii_lowercase()).collect())
            }
        };
        guarded.map_err(|error| self.explain(error))
    }

    fn bind(&self, statement: &mut Statement<'_>, parameters: &Parameters) -> Result<(), SqlError> {
        let count = statement.parameter_count();
        for place in 1..=count {
            let name = statement.parameter_name(place).map(str::to_owned);
            let value = match parameters {
                Parameters::None => None,
                Parameters::Listed(values) => values.get(place - 1),
                Parameters::Named(values) => name.as_deref().and_then(|name| {
                    let bare = name.get(1..).unwrap_or_default();
                    values.iter().find(|(it, _)| it == bare || it == name).map(|(_, value)| value)
                }),
            };
            let Some(value) = value else {
                let name = name.unwrap_or_else(|| format!("number {place}"));
                return Err(SqlError::Statement(format!(
                    "the parameter {name} has no value: the statement has {count} parameters"
                )));
            };
            statement.raw_bind_parameter(place, value).map_err(|error| self.explain(error))?;
        }
        if let Parameters::Listed(values) = parameters
            && values.len() > count
        {
            return Err(SqlError::Statement(format!(
                "there are {} values, but the statement has {count} parameters",
                values.len()
            )));
        }
        Ok(())
    }

    /// Passes on the rows of a statement.
    fn answer(
        &self,
        statement: &mut Statement<'_>,
        answer: &mut dyn Answer,
    ) -> Result<(), SqlError> {
        let columns: Vec<_> = statement
            .columns()
            .map(|column| (column.name().to_owned(), column.decl_type().map(str::to_owned)))
            .collect();
        if !columns.is_empty() {
            answer.begin(&columns)?;
        }
        let mut rows = statement.raw_query();
        let mut left = self.limits.map_or(u64::MAX, |limits| limits.rows);
        while let Some(row) = rows.next().map_err(|error| self.explain(error))? {
            left = left
                .checked_sub(1)
                .ok_or_else(|| SqlError::Rows(self.limits.map_or(0, |limits| limits.rows)))?;
            let values = (0..columns.len()).map(|place| row.get_ref(place));
            let values: Result<Vec<_>, _> = values.collect();
            answer.row(&values.map_err(|error| self.explain(error))?)?;
        }
        if !columns.is_empty() {
            answer.end()?;
        }
        Ok(())
    }

    /// Returns an error of SQLite as one of ours.
    fn explain(&self, error: rusqlite::Error) -> SqlError {
        let limits = self.limits();
        if let Some(kind) = unreadable(&error) {
            return SqlError::Other(Error::new(kind, said(error)));
        }
        let code = error.sqlite_error_code();
        match (code, self.watch.ended()) {
            (Some(ErrorCode::OperationInterrupted), Ended::Time) => SqlError::Time(limits.time),
            (Some(ErrorCode::OperationInterrupted), Ended::Memory) => {
                SqlError::Memory(limits.memory)
            }
            (Some(ErrorCode::OperationInterrupted), Ended::No) => SqlError::Interrupted,
            (Some(ErrorCode::AuthorizationForStatementDenied), _) if self.limits.is_none() => {
                SqlError::ReadOnly(
                    "nothing can be changed here: SQL reads. `annals shell FILE`, a program, and the server's transactions \
                     write; CREATE TEMP TABLE and CREATE TEMP VIEW make what is there up to the end of this connection"
                        .to_owned(),
                )
            }
            (Some(ErrorCode::AuthorizationForStatementDenied), _) => SqlError::ReadOnly(
                "SQL only reads here: SELECT, WITH, VALUES, EXPLAIN, and PRAGMA table_info; changes are \
                 transactions"
                    .to_owned(),
            ),
            (Some(ErrorCode::ReadOnly), _) => SqlError::ReadOnly(said(error)),
            _ if error.to_string().contains("too many attached databases") => SqlError::ReadOnly(
                "SQL opens no other files here: no ATTACH, no VACUUM INTO".to_owned(),
            ),
            _ => SqlError::Statement(self.with_reason(said(error))),
        }
    }

    /// Says why a virtual table isn't there, or that a word of SQL needs quotes.
    fn with_reason(&self, message: String) -> String {
        let missing = message.strip_prefix("no such table: ").and_then(|rest| {
            let name = rest.split(',').next()?;
            Some(name.strip_prefix("temp.").unwrap_or(name))
        });
        let is_it = |(name, _): &&(String, String)| {
            missing.is_some_and(|missing| missing.eq_ignore_ascii_case(name))
        };
        match self.left_out.iter().find(is_it) {
            Some((name, why)) => format!("`{name}` isn't there: {why}"),
            None => self.with_name(missing).map_or_else(
                || self.with_quotes(message.clone()),
                |near| format!("{message}; did you mean `{near}`?"),
            ),
        }
    }

    /// Returns the name of the table that is probably meant by one that isn't there.
    fn with_name(&self, missing: Option<&str>) -> Option<&str> {
        let names = self.schema.tables().iter().map(|table| table.name.as_str());
        annals_schema::nearest(missing?, names)
    }

    /// Says of a word of SQL that is also the name of a table or field that it needs quotes.
    fn with_quotes(&self, message: String) -> String {
        let word = message.strip_prefix("near \"").and_then(|rest| rest.split_once('"'));
        let Some((word, _)) = word else { return message };
        let is_name = self.schema.tables().iter().any(|table| {
            let mut names = table.fields.iter().map(|field| &field.name).chain([&table.name]);
            names.any(|name| name.eq_ignore_ascii_case(word))
        });
        match is_name {
            true => {
                format!(
                    "{message}; as the name of a table or column this word of SQL needs quotes: \"{word}\""
                )
            }
            false => message,
        }
    }
}

fn not_utf8(error: impl std::fmt::Display) -> SqlError {
    SqlError::Statement(error.to_string())
}

/// Returns SQLite's message without the code.
fn said(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, sql, offset, .. } => {
            let begin = usize::try_from(offset).unwrap_or(0);
            match sql.get(begin..).filter(|rest| !rest.is_empty()) {
                Some(rest) => {
                    let near: String = rest.chars().take(40).collect();
                    format!("{msg}, at: {near}")
                }
                None => msg,
            }
        }
        error => error.to_string(),
    }
}
