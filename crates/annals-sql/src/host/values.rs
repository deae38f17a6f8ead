//! Values between SQLite and Rust.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;

use rusqlite::ffi;

use super::Fault;

/// A value of SQLite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form<'v> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'v, str>),
    Blob(Cow<'v, [u8]>),
}

impl Form<'_> {
    /// Returns the value with bytes of its own.
    pub(crate) fn into_owned(self) -> Form<'static> {
        match self {
            Self::Null => Form::Null,
            Self::Integer(value) => Form::Integer(value),
            Self::Real(value) => Form::Real(value),
            Self::Text(value) => Form::Text(Cow::Owned(value.into_owned())),
            Self::Blob(value) => Form::Blob(Cow::Owned(value.into_owned())),
        }
    }

    /// Reads a value of SQLite. A text that isn't UTF-8 is bytes: no value of ours equals it.
    ///
    /// # Safety
    /// It is a value that SQLite has given, and stays as it is during `'v`.
    #[expect(unsafe_code, reason = "values of C")]
    pub(super) unsafe fn read<'v>(value: *mut ffi::sqlite3_value) -> Form<'v> {
        // SAFETY: the caller's value; text and blob pointers are valid for the lengths, asked for after them.
        unsafe {
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_INTEGER => Form::Integer(ffi::sqlite3_value_int64(value)),
                ffi::SQLITE_FLOAT => Form::Real(ffi::sqlite3_value_double(value)),
                ffi::SQLITE_TEXT => {
                    let bytes = bytes_at(ffi::sqlite3_value_text(value).cast(), value);
                    match std::str::from_utf8(bytes) {
                        Ok(text) => Form::Text(Cow::Borrowed(text)),
                        Err(_) => Form::Blob(Cow::Borrowed(bytes)),
                    }
                }
                ffi::SQLITE_BLOB => {
                    Form::Blob(Cow::Borrowed(bytes_at(ffi::sqlite3_value_blob(value), value)))
                }
                _ => Form::Null,
            }
        }
    }
}

/// Returns the bytes of a text or a blob.
///
/// # Safety
/// `start` is the beginning of them, as SQLite returned it.
#[expect(unsafe_code, reason = "values of C")]
unsafe fn bytes_at<'v>(start: *const c_void, value: *mut ffi::sqlite3_value) -> &'v [u8] {
    // SAFETY: the caller's value; SQLite says how long it is.
    unsafe {
        match usize::try_from(ffi::sqlite3_value_bytes(value)) {
            Ok(len) if len > 0 && !start.is_null() => std::slice::from_raw_parts(start.cast(), len),
            _ => &[],
        }
    }
}

/// The arguments of a scan.
pub(crate) struct Arguments<'a>(&'a [*mut ffi::sqlite3_value]);

impl<'a> Arguments<'a> {
    /// Takes the arguments of an entry.
    ///
    /// # Safety
    /// They are as SQLite passed them, and stay so during `'a`.
    #[expect(unsafe_code, reason = "values of C")]
    pub(super) unsafe fn new(count: c_int, values: *mut *mut ffi::sqlite3_value) -> Self {
        match usize::try_from(count) {
            // SAFETY: so many values are there.
            Ok(count) if count > 0 => Self(unsafe { std::slice::from_raw_parts(values, count) }),
            _ => Self(&[]),
        }
    }

    /// Returns how many there are.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an argument; null if there aren't so many.
    #[expect(unsafe_code, reason = "values of C")]
    pub(crate) fn get(&self, place: usize) -> Form<'a> {
        // SAFETY: they were passed by SQLite, and stay as long as this.
        self.0.get(place).map_or(Form::Null, |&value| unsafe { Form::read(value) })
    }
}

impl Arguments<'_> {
    /// True of the value of a parameter: SQLite compares it as if it were written in the query.
    #[expect(unsafe_code, reason = "values of C")]
    pub(crate) fn is_parameter(&self, place: usize) -> bool {
        // SAFETY: they were passed by SQLite, and stay as long as this.
        self.0.get(place).is_some_and(|&value| unsafe { ffi::sqlite3_value_frombind(value) } != 0)
    }

    /// Returns the values of an argument that passes all values of an IN at once, without null: nothing equals it.
    #[expect(unsafe_code, reason = "values of C")]
    pub(crate) fn list(&self, place: usize) -> Result<Vec<Form<'static>>, Fault> {
        let Some(&list) = self.0.get(place) else { return Ok(Vec::new()) };
        let (mut values, mut value) = (Vec::new(), std::ptr::null_mut());
        // SAFETY: the list was passed by SQLite; each of its values is valid up to the next one, and is copied.
        unsafe {
            let mut found = ffi::sqlite3_vtab_in_first(list, &raw mut value);
            while found == ffi::SQLITE_OK && !value.is_null() {
                match Form::read(value) {
                    Form::Null => {}
                    form => values.push(form.into_owned()),
                }
                found = ffi::sqlite3_vtab_in_next(list, &raw mut value);
            }
            match found {
                ffi::SQLITE_OK | ffi::SQLITE_DONE => Ok(values),
                code => Err(Fault {
                    code,
                    message: "SQLite doesn't list the values of an IN".to_owned(),
                }),
            }
        }
    }
}

/// Where the value of a column goes.
pub(crate) struct Out<'c> {
    context: *mut ffi::sqlite3_context,
    of: PhantomData<&'c ()>,
}

impl Out<'_> {
    /// Takes the context of an entry.
    pub(super) const fn new(context: *mut ffi::sqlite3_context) -> Self {
        Self { context, of: PhantomData }
    }

    /// Passes the value to SQLite, which copies it.
    #[expect(unsafe_code, reason = "values of C")]
    pub(crate) fn put(self, form: &Form<'_>) {
        // SAFETY: the context is SQLite's, during a call of it; SQLite copies what it is given.
        unsafe {
            match form {
                Form::Null => ffi::sqlite3_result_null(self.context),
                Form::Integer(value) => ffi::sqlite3_result_int64(self.context, *value),
                Form::Real(value) => ffi::sqlite3_result_double(self.context, *value),
                Form::Text(text) => match c_int::try_from(text.len()) {
                    Ok(len) => {
                        let start = text.as_ptr().cast::<c_char>();
                        let copied = ffi::SQLITE_TRANSIENT();
                        ffi::sqlite3_result_text(self.context, start, len, copied);
                    }
                    Err(_) => ffi::sqlite3_result_error_toobig(self.context),
                },
                Form::Blob(bytes) if bytes.is_empty() => {
                    ffi::sqlite3_result_zeroblob(self.context, 0);
                }
                Form::Blob(bytes) => match c_int::try_from(bytes.len()) {
                    Ok(len) => {
                        let start = bytes.as_ptr().cast::<c_void>();
                        let copied = ffi::SQLITE_TRANSIENT();
                        ffi::sqlite3_result_blob(self.context, start, len, copied);
                    }
                    Err(_) => ffi::sqlite3_result_error_toobig(self.context),
                },
            }
        }
    }
}

/// Returns how much memory SQLite has in this process, in bytes.
#[expect(unsafe_code, reason = "a number of C")]
#[cfg(feature = "bundled")]
pub(crate) fn memory_used() -> u64 {
    // SAFETY: it reads a counter.
    u64::try_from(unsafe { ffi::sqlite3_memory_used() }).unwrap_or(0)
}
