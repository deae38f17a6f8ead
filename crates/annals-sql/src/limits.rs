//! Limits of queries of strangers: of time, rows and memory, and of what they may do.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use crate::attach::MODULE;
use crate::host::memory_used;

/// Steps of SQLite's machine between two checks: some ten microseconds.
const STEPS: i32 = 1000;

/// The limits of a query. A query that reaches one ends with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of all statements that are run together, from the beginning of the first.
    pub time: Duration,
    /// The most rows of the answer.
    pub rows: u64,
    /// The longest answer, in bytes.
    pub bytes: u64,
    /// The most memory that SQLite may take while it runs, in bytes, that of other queries of this process included.
    pub memory: u64,
}

impl Default for Limits {
    /// 10 s, 100,000 rows, 64 MiB, and 256 MiB of memory.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), rows: 100_000, bytes: 64 << 20, memory: 256 << 20 }
    }
}

/// Why a query was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    No = 0,
    Time = 1,
    Memory = 2,
}

/// Watches the queries of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    /// When the query has to end, in microseconds of the clock.
    deadline: AtomicU64,
    /// Why it was ended.
    reason: AtomicU8,
    /// True as soon as nobody waits for the answer any more.
    gone: OnceLock<Arc<AtomicBool>>,
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Watched {
    fn is_gone(&self) -> bool {
        self.gone.get().is_some_and(|gone| gone.load(Ordering::Relaxed))
    }
}

impl Watch {
    /// Ends queries as soon as this is true; that holds from the first call on.
    pub(crate) fn end_when(&self, gone: Arc<AtomicBool>) {
        let _ = self.0.gone.set(gone);
    }

    /// Returns why the last query was ended.
    pub(crate) fn ended(&self) -> Ended {
        match self.0.reason.load(Ordering::Relaxed) {
            1 => Ended::Time,
            2 => Ended::Memory,
            _ => Ended::No,
        }
    }

    /// Begins to watch queries, which share one deadline.
    pub(crate) fn begin(&self, limits: Limits) {
        let deadline = SystemClock.elapsed().saturating_add(limits.time);
        self.0.deadline.store(microseconds(deadline), Ordering::Relaxed);
        self.0.reason.store(Ended::No as u8, Ordering::Relaxed);
    }

    /// Makes a connection look at the limits while it runs a query.
    pub(crate) fn install(
        &self,
        connection: &mut Connection,
        limits: Limits,
    ) -> rusqlite::Result<()> {
        self.begin(limits);
        let watched = Arc::clone(&self.0);
        connection.progress_handler(
            STEPS,
            Some(move || {
                let deadline = watched.deadline.load(Ordering::Relaxed);
                let ended = match () {
                    () if watched.is_gone() => return true,
                    () if microseconds(SystemClock.elapsed()) > deadline => Ended::Time,
                    () if memory_used() > limits.memory => Ended::Memory,
                    () => return false,
                };
                watched.reason.store(ended as u8, Ordering::Relaxed);
                true
            }),
        )
    }
}

/// Keeps a new connection from making temporary files: sorting takes memory, which is watched.
///
/// Changing this setting removes temporary tables, so it comes before them.
pub(crate) fn keep_in_memory(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Lets a connection only read: no other file, no setting, no function that reaches out of the database.
pub(crate) fn confine(connection: &mut Connection, limits: &Limits) -> rusqlite::Result<()> {
    connection.pragma_update(None, "trusted_schema", false)?;
    let longest = i32::try_from(limits.memory / 8).unwrap_or(i32::MAX).max(1 << 20);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, longest),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 1 << 20),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        // A pattern with many wild cards takes long, in one step.
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    connection.authorizer(Some(authorize))
}

/// Keeps statements from what would look as if it had changed the database, whose tables have these names in small
/// letters: changing and dropping them, and making others that aren't temporary.
pub(crate) fn keep(connection: &mut Connection, tables: HashSet<String>) -> rusqlite::Result<()> {
    let is_ours = move |name: &str| tables.contains(&name.to_ascii_lowercase());
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let is_refused = match context.action {
            // The tables refuse it, too, but are not asked where no row is meant.
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name } => {
                context.database_name == Some("temp") && is_ours(table_name)
            }
            AuthAction::DropVtable { module_name, .. } => module_name.starts_with(MODULE),
            AuthAction::CreateTable { .. }
            | AuthAction::CreateView { .. }
            | AuthAction::CreateIndex { .. }
            | AuthAction::CreateTrigger { .. }
            | AuthAction::CreateVtable { .. } => context.database_name == Some("main"),
            _ => false,
        };
        if is_refused { Authorization::Deny } else { Authorization::Allow }
    }))
}

/// The pragmas that describe tables.
const PRAGMAS: [&str; 5] =
    ["table_info", "table_xinfo", "table_list", "function_list", "compile_options"];

/// Functions that load code or read files, where SQLite has them.
const FUNCTIONS: [&str; 6] =
    ["load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_log"];

fn authorize(context: AuthContext<'_>) -> Authorization {
    let is_one_of =
        |names: &[&str], name: &str| names.iter().any(|it| it.eq_ignore_ascii_case(name));
    let is_allowed = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !is_one_of(&FUNCTIONS, function_name),
        AuthAction::Pragma { pragma_name, .. } => is_one_of(&PRAGMAS, pragma_name),
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}
