//! Collations that tests replace: those of the private languages `qaa` to `qtz`. Tests run side by side, so each takes
//! a language of its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Sorter;

/// What the library has of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provided {
    /// Nothing, as if it was built without collations.
    Nothing,
    /// The order of another locale, as another version.
    As(&'static str),
}

static REPLACED: Mutex<BTreeMap<String, Provided>> = Mutex::new(BTreeMap::new());

/// Replaces what the library has of a language.
///
/// # Panics
/// If it is no private one.
pub fn provide(language: &str, provided: Provided) {
    assert!(("qaa"..="qtz").contains(&language), "{language}");
    let mut replaced = REPLACED.lock().unwrap_or_else(PoisonError::into_inner);
    replaced.insert(language.to_owned(), provided);
}

/// Returns the version of a collation that the library has.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn version(locale: &str) -> String {
    super::sorter(locale).expect("the locale has an order").version().to_owned()
}

pub(super) fn sorter(locale: &str) -> Option<Option<Sorter>> {
    let language = locale.split('-').next().unwrap_or_default();
    let replaced = REPLACED.lock().unwrap_or_else(PoisonError::into_inner);
    Some(match replaced.get(language)? {
        Provided::Nothing => None,
        Provided::As(other) => Sorter::new(other),
    })
}
