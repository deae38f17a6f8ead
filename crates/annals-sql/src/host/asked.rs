//! The conditions and the order of a query, as SQLite asks for a plan, and the answer.

use std::ffi::{CStr, c_char, c_int};

use rusqlite::ffi;

use super::values::Form;

/// A comparison of a column with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Like,
    Glob,
    /// `IS`: as equal, and null is null.
    Is,
    IsNull,
    /// `<>`, and `IS NOT`: no plan uses it.
    Unequal,
}

/// True if patterns narrow a search. SQLite before 3.51 also passes on those in the ON of an outer join, where they say
/// nothing about the rows, and a program that loads the extension may have a LIKE of its own.
const PATTERNS: bool = cfg!(feature = "bundled");

impl Op {
    fn of(code: u8) -> Option<Self> {
        Some(match c_int::from(code) {
            ffi::SQLITE_INDEX_CONSTRAINT_EQ => Self::Equal,
            ffi::SQLITE_INDEX_CONSTRAINT_GT => Self::Greater,
            ffi::SQLITE_INDEX_CONSTRAINT_GE => Self::GreaterOrEqual,
            ffi::SQLITE_INDEX_CONSTRAINT_LT => Self::Less,
            ffi::SQLITE_INDEX_CONSTRAINT_LE => Self::LessOrEqual,
            ffi::SQLITE_INDEX_CONSTRAINT_LIKE if PATTERNS => Self::Like,
            ffi::SQLITE_INDEX_CONSTRAINT_GLOB if PATTERNS => Self::Glob,
            ffi::SQLITE_INDEX_CONSTRAINT_ISNULL => Self::IsNull,
            ffi::SQLITE_INDEX_CONSTRAINT_IS => Self::Is,
            ffi::SQLITE_INDEX_CONSTRAINT_NE | ffi::SQLITE_INDEX_CONSTRAINT_ISNOT => Self::Unequal,
            _ => return None,
        })
    }

    /// Returns how it is written in a plan.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Equal | Self::Is | Self::IsNull => "=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Like => " LIKE ",
            Self::Glob => " GLOB ",
            Self::Unequal => "<>",
        }
    }
}

/// A condition.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// Its number.
    pub(crate) place: usize,
    /// The column; -1 for the id of the row.
    pub(crate) column: c_int,
    /// The comparison; `None` if it is one that no plan uses.
    pub(crate) op: Option<Op>,
    /// False if its value isn't known yet in the order of tables that SQLite tries.
    pub(crate) is_usable: bool,
    /// True if it is an IN: a list, or a subquery. The column is compared with each value as if it were equality.
    pub(crate) is_in: bool,
    /// The collation by which it compares.
    pub(crate) collation: Option<String>,
    /// The value, if it is known by now.
    pub(crate) value: Option<Form<'static>>,
}

impl Term {
    /// True if all values of an IN can be passed at once.
    pub(crate) const fn can_be_listed(&self) -> bool {
        self.is_in && self.place < LISTED
    }
}

/// SQLite says only of so many conditions whether they are an IN.
const LISTED: usize = 32;

/// A part of the requested order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) column: c_int,
    pub(crate) is_descending: bool,
}

/// A query for a plan.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) terms: Vec<Term>,
    pub(crate) order: Vec<Order>,
    /// True if the statement reads no other table, and ends after some rows.
    pub(crate) has_limit: bool,
    /// The columns that the statement reads, a bit for each; the last bit is for all from 63 on.
    used: u64,
}

/// A plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The conditions whose values are the arguments of the scan, in order.
    pub(crate) arguments: Vec<usize>,
    /// How many of the first of these are arguments of a table function, which SQLite doesn't check again.
    pub(crate) given: usize,
    /// The conditions among these that pass all values of an IN at once.
    pub(crate) lists: Vec<usize>,
    /// The number that the scan gets.
    pub(crate) number: c_int,
    /// The text that `EXPLAIN QUERY PLAN` shows.
    pub(crate) text: String,
    pub(crate) cost: f64,
    pub(crate) rows: u64,
    /// True if rows come in the requested order.
    pub(crate) is_ordered: bool,
    /// True if there is at most one row.
    pub(crate) is_unique: bool,
}

impl Asked {
    /// True if the statement reads a column.
    pub(crate) const fn uses(&self, column: u32) -> bool {
        let last = u64::BITS - 1;
        self.used & (1 << if column < last { column } else { last }) != 0
    }

    /// Reads what SQLite asks.
    ///
    /// # Safety
    /// `info` is that of a call of `xBestIndex`.
    #[expect(unsafe_code, reason = "a structure of C")]
    pub(super) unsafe fn read(info: *mut ffi::sqlite3_index_info) -> Self {
        let len = |count: c_int| usize::try_from(count).unwrap_or(0);
        // SAFETY: SQLite's arrays have so many items, and stay during the call.
        unsafe {
            let terms = (0..len((*info).nConstraint)).map(|place| {
                let raw = &*(*info).aConstraint.add(place);
                let number = c_int::try_from(place).unwrap_or(0);
                let op = Op::of(raw.op);
                let value = op.and_then(|op| match op {
                    Op::IsNull => Some(Form::Null),
                    _ => constant(info, number),
                });
                let is_in = place >= LISTED || ffi::sqlite3_vtab_in(info, number, -1) != 0;
                Term {
                    place,
                    column: raw.iColumn,
                    op,
                    is_usable: raw.usable != 0,
                    is_in: op == Some(Op::Equal) && is_in,
                    collation: op.and_then(|_| collation(info, number)),
                    value,
                }
            });
            let order = (0..len((*info).nOrderBy)).map(|place| {
                let raw = &*(*info).aOrderBy.add(place);
                Order { column: raw.iColumn, is_descending: raw.desc != 0 }
            });
            let is_limit = |place| {
                let op = c_int::from((*(*info).aConstraint.add(place)).op);
                op == ffi::SQLITE_INDEX_CONSTRAINT_LIMIT
            };
            Self {
                has_limit: (0..len((*info).nConstraint)).any(is_limit),
                terms: terms.collect(),
                order: order.collect(),
                used: (*info).colUsed,
            }
        }
    }
}

impl Answer {
    /// Writes the plan where SQLite reads it. SQLite checks conditions again, but for given arguments.
    ///
    /// # Safety
    /// As [`Asked::read`], of the same call.
    #[expect(unsafe_code, reason = "a structure of C")]
    pub(super) unsafe fn write(&self, info: *mut ffi::sqlite3_index_info) {
        // SAFETY: the places are those of conditions of this call; the text is SQLite's to free.
        unsafe {
            for (argument, &place) in self.arguments.iter().enumerate() {
                let usage = &mut *(*info).aConstraintUsage.add(place);
                usage.argvIndex = c_int::try_from(argument + 1).unwrap_or(0);
                usage.omit = u8::from(argument < self.given);
            }
            for &place in &self.lists {
                ffi::sqlite3_vtab_in(info, c_int::try_from(place).unwrap_or(c_int::MAX), 1);
            }
            (*info).idxNum = self.number;
            (*info).idxStr = text(&self.text);
            (*info).needToFreeIdxStr = c_int::from(!(*info).idxStr.is_null());
            (*info).orderByConsumed = c_int::from(self.is_ordered);
            (*info).estimatedCost = self.cost;
            (*info).estimatedRows = i64::try_from(self.rows).unwrap_or(i64::MAX);
            if self.is_unique {
                (*info).idxFlags |= ffi::SQLITE_INDEX_SCAN_UNIQUE;
            }
        }
    }
}

/// Returns the collation by which a condition compares.
///
/// # Safety
/// `info` is that of the call of `xBestIndex`, and has such a condition.
#[expect(unsafe_code, reason = "a function of C")]
unsafe fn collation(info: *mut ffi::sqlite3_index_info, place: c_int) -> Option<String> {
    // SAFETY: the caller's; the name is text that ends with a zero.
    unsafe {
        let name = ffi::sqlite3_vtab_collation(info, place);
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name).to_str().ok().map(str::to_owned)
    }
}

/// Returns the value that a condition compares with, if it is known when the query is prepared.
///
/// # Safety
/// As [`collation`].
#[expect(unsafe_code, reason = "a function of C")]
unsafe fn constant(info: *mut ffi::sqlite3_index_info, place: c_int) -> Option<Form<'static>> {
    let mut value = std::ptr::null_mut();
    // SAFETY: the caller's; the value is valid until the call of `xBestIndex` ends, and is copied.
    unsafe {
        let found = ffi::sqlite3_vtab_rhs_value(info, place, &raw mut value);
        (found == ffi::SQLITE_OK && !value.is_null()).then(|| Form::read(value).into_owned())
    }
}

/// Copies a text into memory of SQLite, with a zero at its end; null if there is none left.
#[expect(unsafe_code, reason = "memory of C")]
pub(super) fn text(text: &str) -> *mut c_char {
    let Ok(size) = c_int::try_from(text.len() + 1) else { return std::ptr::null_mut() };
    // SAFETY: the memory has one byte more than the text.
    unsafe { copy(text, ffi::sqlite3_malloc(size).cast()) }
}

/// Copies a text into memory, with a zero at its end; null if the memory is.
///
/// # Safety
/// The memory has one byte more than the text.
#[expect(unsafe_code, reason = "memory of C")]
pub(super) unsafe fn copy(text: &str, memory: *mut u8) -> *mut c_char {
    if !memory.is_null() {
        // SAFETY: the caller's memory.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), memory, text.len());
            *memory.add(text.len()) = 0;
        }
    }
    memory.cast()
}
