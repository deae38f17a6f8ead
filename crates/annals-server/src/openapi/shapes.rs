//! The shapes of answers, for the description. Answers are written as text, row by row, and a test compares them with these.

#![expect(dead_code, reason = "they describe JSON that others write")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A refusal.
#[derive(ToSchema)]
pub(crate) struct Failure {
    /// The name of the reason, for programs.
    error: String,
    /// What is wrong, where, and what to do.
    message: String,
}

/// A refusal because history isn't kept any more.
#[derive(ToSchema)]
pub(crate) struct Gone {
    error: String,
    message: String,
    /// The oldest transaction after which all is kept.
    oldest: u64,
    /// The erasures since the cursor.
    erasures: Vec<Erasure>,
    /// The cursor in the present history, if the erasures say which it is.
    carried: Option<String>,
}

/// An erasure of values.
#[derive(ToSchema)]
pub(crate) struct Erasure {
    /// The transaction that marks it.
    txid: u64,
    /// The first transaction that was written again.
    from: u64,
}

/// Transactions that changed a table.
#[derive(ToSchema)]
pub(crate) struct TableLog {
    /// The newest one first, with the changes of the table only.
    transactions: Vec<Transaction>,
    /// Where to continue; null at the end.
    next: Option<u64>,
}

/// What differs between two moments.
#[derive(ToSchema)]
pub(crate) struct Compared {
    /// How many rows of each table differ; tables without such rows are left out.
    tables: BTreeMap<String, u64>,
    /// Rows of the table that was asked for.
    rows: Vec<Change>,
    /// Where to continue, `TABLE/ID`; null at the end.
    next: Option<String>,
}

/// Facts of a database.
#[derive(ToSchema)]
pub(crate) struct Facts {
    /// The journal's random id, 32 hexadecimal digits.
    id: String,
    /// The last transaction.
    txid: u64,
    /// The chain after it, 16 hexadecimal digits.
    chain: String,
    /// The oldest transaction that is kept.
    first: u64,
    /// A hash of the schema's commands.
    schema: String,
    features: Vec<String>,
    /// The names of the procedures.
    procedures: Vec<String>,
}

/// The files of a database, up to its last transaction.
#[derive(ToSchema)]
pub(crate) struct Files {
    /// The last transaction.
    txid: u64,
    /// The chain after it.
    chain: String,
    /// The segments of the journal, the oldest first.
    segments: Vec<Segment>,
    /// The newest root of the image; null if there is none.
    image: Option<Image>,
}

/// A segment of the journal.
#[derive(ToSchema)]
pub(crate) struct Segment {
    number: u64,
    bytes: u64,
    /// True if it is complete.
    sealed: bool,
    /// The `ETag` of the file.
    tag: String,
}

/// A root of the image.
#[derive(ToSchema)]
pub(crate) struct Image {
    root: u64,
    bytes: u64,
    /// The `ETag` of the file.
    tag: String,
}

/// Chains after transactions, null for those that aren't in the kept history.
#[derive(ToSchema)]
pub(crate) struct Chains {
    chains: Vec<Option<String>>,
}

/// The values of a row by the names of its fields, with its `id`.
#[derive(ToSchema)]
pub(crate) struct Row(BTreeMap<String, Value>);

/// Rows in order.
#[derive(ToSchema)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    /// The `after` of the next page; null at the end.
    next: Option<Next>,
}

/// Where a list of rows continues: after an id, or at a place in the order of an index.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Next {
    Id(u64),
    Place(String),
}

/// A transaction that changed a row.
#[derive(ToSchema)]
pub(crate) struct Version {
    txid: u64,
    /// RFC 3339.
    time: String,
    comment: Option<String>,
    /// `inserted`, `updated` or `deleted`, ..
    kind: String,
    /// The fields that changed, as they were before; null if there was no row.
    old: Option<Row>,
    /// As they were after.
    new: Option<Row>,
}

/// Since when a field of a row has its value.
#[derive(ToSchema)]
pub(crate) struct Blame {
    field: String,
    value: Value,
    txid: u64,
    time: String,
    comment: Option<String>,
    kind: String,
}

/// A change of a row.
#[derive(ToSchema)]
pub(crate) struct Change {
    table: String,
    id: u64,
    /// Its values before; null if there was no row.
    before: Option<Row>,
    /// Its values after.
    after: Option<Row>,
}

/// A transaction, with the rows that it changed.
#[derive(ToSchema)]
pub(crate) struct Transaction {
    txid: u64,
    time: String,
    comment: Option<String>,
    changes: Vec<Change>,
    /// How many further changes there are, if the request has a limit.
    left_out: Option<u64>,
}

/// The transaction of a moment.
#[derive(ToSchema)]
pub(crate) struct Found {
    txid: u64,
}

/// A transaction that is history, on permanent storage.
#[derive(ToSchema)]
pub(crate) struct Committed {
    txid: u64,
    /// The chain after it.
    chain: String,
    /// How it was made permanent.
    level: String,
    /// The id of each change's row.
    ids: Option<Vec<u64>>,
    /// What the procedure returned.
    answer: Option<Value>,
    /// True if the request ran before, by its key.
    repeated: Option<bool>,
}

/// The databases that are served.
#[derive(ToSchema)]
pub(crate) struct Ready {
    databases: u64,
}
