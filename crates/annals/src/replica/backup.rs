//! A backup: a copy that is made under a name of its own, and gets the one that was asked for once it is whole.

use std::sync::Arc;

use super::names::Names;
use super::push::{Copied, Pushing};
use crate::Result;
use crate::progress::Watch;
use crate::storage::{Clock, Directory};

/// Makes a copy of all of a journal that is on permanent storage, while others may write it.
pub(crate) fn backup(
    source: (Arc<dyn Directory>, &str),
    (directory, name): (Arc<dyn Directory>, &str),
    clock: Arc<dyn Clock>,
    watch: Option<Watch>,
) -> Result<Copied> {
    let names = Names::new(&directory, name, "backup", &*clock)?;
    let to = (Arc::clone(&directory), names.temporary());
    let mut pushing = Pushing::new(source, to, clock, watch);
    let copied = pushing.bring_up().and_then(|copied| pushing.close().map(|()| copied));
    let copied = copied.map_err(|error| names.explain(error))?;
    names.give()?;
    Ok(copied)
}
