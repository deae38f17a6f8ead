//! Collations of indexes: sort keys of strings, whose bytes compare as the strings do in a language.
//!
//! With the feature `collation` the sort keys are those of ICU; without it there are none. They change with the data of
//! ICU, so a file has the version of the data in its schema. An index is available only in that version.
//!
//! Invariants
//! 1. All sort keys in a tree are of the version that the schema of its view names.
//! 2. A version determines the sort keys of all strings.

#[cfg_attr(not(feature = "collation"), path = "nothing.rs")]
mod icu;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;

#[cfg(test)]
#[cfg(feature = "collation")]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use annals_schema::{Collated, Command, Index};

use crate::{Error, ErrorKind, Result};

pub(crate) use icu::Sorter;

/// Where an error of an index that the library can't sort happened.
pub const ONLY_READ: &str = "it can only be read, without an index";

/// The known sorters by their locales: making one takes a millisecond.
static KNOWN: Mutex<BTreeMap<String, Arc<Sorter>>> = Mutex::new(BTreeMap::new());

/// Returns the sorter of a locale, if the library has one.
fn sorter(locale: &str) -> Option<Arc<Sorter>> {
    #[cfg(any(test, feature = "testing"))]
    if let Some(replaced) = testing::sorter(locale) {
        return replaced.map(Arc::new);
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sorter) = known.get(locale) {
        return Some(Arc::clone(sorter));
    }
    let sorter = Arc::new(Sorter::new(locale)?);
    known.insert(locale.to_owned(), Arc::clone(&sorter));
    Some(sorter)
}

/// Returns the sorter of a field of an index, in the version that the index has.
///
/// # Errors
/// The library doesn't have it: the reason.
pub(crate) fn sorter_of(index: &Index, collated: &Collated) -> Result<Arc<Sorter>, String> {
    let (name, Collated { locale, version, .. }) = (&index.name, collated);
    match sorter(locale) {
        None => Err(missing(name, locale)),
        Some(sorter) if sorter.version() == version => Ok(sorter),
        Some(sorter) => Err(format!(
            "index `{name}` is sorted by version `{version}` of `collate {locale}`, and this program has version \
             `{}`; open the file for writing with this program, which sorts the index again",
            sorter.version()
        )),
    }
}

fn missing(name: &str, locale: &str) -> String {
    format!(
        "index `{name}` is sorted by `collate {locale}`, which this program was built without; build it with the \
         feature `collation` of the crate `annals`"
    )
}

/// Returns the version of a collation of an index that the library has.
///
/// # Errors
/// `Unsupported`, with the name of the index: it has none.
pub fn version(index: &str, collated: &Collated) -> Result<String> {
    let sorter = sorter(&collated.locale);
    let sorter = sorter
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, missing(index, &collated.locale)))?;
    Ok(sorter.version().to_owned())
}

/// Returns a command with the versions of the collations that the library has.
///
/// # Errors
/// As [`version`].
pub fn with_versions(command: &Command) -> Result<Cow<'_, Command>> {
    let Command::CreateIndex { name, collated, .. } = command else {
        return Ok(Cow::Borrowed(command));
    };
    let mut versions = collated.clone();
    for collated in &mut versions {
        collated.version = version(name, collated)?;
    }
    let mut command = command.clone();
    if let Command::CreateIndex { collated, .. } = &mut command {
        *collated = versions;
    }
    Ok(Cow::Owned(command))
}
