//! The values to erase, and the report of an erasure.

use annals_schema::RowId;

/// The values to erase: all that a field of a row, or all of its fields, ever had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erase {
    /// The name of the table, or the last one that a dropped table had. Of several with the name, it is the existing
    /// one, or else the last dropped one with a value to erase.
    pub table: String,
    /// The id of the row, which need not be there any more.
    pub row: RowId,
    /// The name of the field, which means one of several as that of the table does. All fields, if none is named.
    pub field: Option<String>,
    /// Also erases the comments of all transactions that wrote such a value: they may say the same. The keys of requests
    /// stay.
    pub comments: bool,
    /// Also erases the comments of these transactions. With them there need be no value.
    pub comments_of: Vec<u64>,
    /// Overwrites the bytes of the old files with zeros before they are removed. That doesn't reach copies that a
    /// disk or a file system has made itself, as SSDs and file systems that copy on write do. A process that reads an
    /// old file meanwhile finds it damaged.
    pub overwrite: bool,
    /// Only reports the plan: takes no lock, and writes nothing.
    pub dry_run: bool,
}

impl Erase {
    /// Means all fields of a row, without comments.
    #[must_use]
    pub fn new(table: impl Into<String>, row: RowId) -> Self {
        Self {
            table: table.into(),
            row,
            field: None,
            comments: false,
            comments_of: Vec::new(),
            overwrite: false,
            dry_run: false,
        }
    }
}

/// The report of an erasure, or its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// The names of the fields of which values were erased.
    pub fields: Vec<String>,
    /// How many values those were, at all times.
    pub values: u64,
    /// How many comments were erased: they are empty now.
    pub comments: u64,
    /// How many answers to requests with a key were erased: the keys stay, and such a request doesn't run again.
    pub answers: u64,
    /// How many blobs lost their bytes, since nothing else ever led to them.
    pub blobs: u64,
    /// The first transaction and the last that had such a value, or such a comment.
    pub held: (u64, u64),
    /// The first and the last rewritten transaction, which have other chains.
    pub rewritten: (u64, u64),
    /// The number of rewritten segments.
    pub segments: u64,
    /// How many bytes those had before.
    pub bytes: u64,
    /// The transaction that marks the erasure: the one after the last.
    pub mark: u64,
    /// How many values of the row are left in tables or fields that had the same name before and were dropped: another
    /// erasure, of the same, is for the next of them.
    pub left: u64,
    /// Files beside the journal that were removed, or would be, since they may hold values: all that are proven to be
    /// made of it.
    pub removed: Vec<String>,
    /// Files with names of such ones that aren't proven to be of this journal. They were left in place: check their
    /// contents.
    pub unproven: Vec<String>,
}
