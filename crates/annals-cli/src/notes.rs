//! Notes about a database on standard error, beside the answer.

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
