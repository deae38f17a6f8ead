//! The conditions and the order of a query, as SQLite asks for a plan, and the answer.

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use super::newer;
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
}

impl Op {
    fn of(code: u8) -> Option<Self> {
        Some(match c_int::from(code) {
            ffi::SQLITE_INDEX_CONSTRAINT_EQ => Self::Equal,
            ffi::SQLITE_INDEX_CONSTRAINT_GT => Self::Greater,
            ffi::SQLITE_INDEX_CONSTRAINT_GE => Self::GreaterOrEqual,
            ffi::SQLITE_INDEX_CONSTRAINT_LT => Self::Less,
            ffi::SQLITE_INDEX_CONSTRAINT_LE => Self::LessOrEqual,
            ffi::SQLITE_INDEX_CONSTRAINT_LIKE => Self::Like,
            ffi::SQLITE_INDEX_CONSTRAINT_GLOB => Self::Glob,
            71 => Self::IsNull,
            72 => Self::Is,
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
    /// The collation by which it compares.
    pub(crate) collation: Option<String>,
    /// The value, if it is known by now.
    pub(crate) value: Option<Form<'static>>,
}

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
}

/// A plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The conditions whose values are the arguments of the scan, in order.
    pub(crate) arguments: Vec<usize>,
    /// How many of the first of these are arguments of a table function, which SQLite doesn't check again.
    pub(crate) given: usize,
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
                    _ => newer::constant(info, number),
                });
                Term {
                    place,
                    column: raw.iColumn,
                    op,
                    is_usable: raw.usable != 0,
                    collation: op.and_then(|_| newer::collation(info, number)),
                    value,
                }
            });
            let order = (0..len((*info).nOrderBy)).map(|place| {
                let raw = &*(*info).aOrderBy.add(place);
                Order { column: raw.iColumn, is_descending: raw.desc != 0 }
            });
            Self { terms: terms.collect(), order: order.collect() }
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

/// Copies a text into memory of SQLite, with a zero at its end; null if there is none left.
#[expect(unsafe_code, reason = "memory of C")]
pub(super) fn text(text: &str) -> *mut c_char {
    let Ok(size) = c_int::try_from(text.len() + 1) else { return std::ptr::null_mut() };
    // SAFETY: the memory has one byte more than the text.
    unsafe {
        let copy = ffi::sqlite3_malloc(size).cast::<u8>();
        if !copy.is_null() {
            std::ptr::copy_nonoverlapping(text.as_ptr(), copy, text.len());
            *copy.add(text.len()) = 0;
        }
        copy.cast()
    }
}
