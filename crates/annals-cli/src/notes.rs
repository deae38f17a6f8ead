//! Notes about a database on standard error, beside the answer.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use annals::{Reader, Unapplied};

use crate::output;

/// Reports something that isn't as the user may expect, on standard error.
pub(crate) fn note(what: &str) {
    output::say(&format!("note: {}", output::plain(what)));
}

/// Prints on standard error the damage of the image found since it was opened, and the action for each.
pub(crate) fn tell_damage(findings: &[String]) {
    for finding in findings {
        note(finding);
    }
}

/// Prints the same of the recoveries since, after another process that shares the file.
pub(crate) fn tell_later_recoveries(database: &annals::Database) {
    for finding in database.recoveries().iter().flat_map(|recovered| &recovered.findings) {
        note(finding);
    }
}

/// True once a database was opened that shows the state before a commit that doesn't apply.
static IS_BEHIND: AtomicBool = AtomicBool::new(false);

/// True if the state read isn't the whole file's, since a commit doesn't apply.
pub(crate) fn is_behind() -> bool {
    IS_BEHIND.load(Ordering::Relaxed)
}

/// Says on standard error if a commit doesn't apply; the program ends with status 1 then.
pub(crate) fn note_unapplied(reader: &Reader, path: &Path) {
    if let Some(unapplied) = note_behind(reader.unapplied().as_ref()) {
        note(&unapplied.explain(&path.display().to_string()));
    }
}

/// Sets the program's exit status if there is a commit that doesn't apply; returns that commit.
fn note_behind(unapplied: Option<&Unapplied>) -> Option<&Unapplied> {
    unapplied.inspect(|_| IS_BEHIND.store(true, Ordering::Relaxed))
}

/// Prints the findings of opening on standard error, such as an unclean shutdown, an unused image, or a commit that
/// can't be replayed.
pub(crate) fn tell_recovery(database: &annals::Database) {
    note_behind(database.unapplied());
    for finding in &database.recovered().findings {
        note(finding);
    }
}
