//! The commands of the program, one file each.

pub(crate) mod backfill;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod import_changes;
pub(crate) mod import_csv;
pub(crate) mod info;
mod info_image;
mod info_json;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod pack;
pub(crate) mod push;
pub(crate) mod recover;
mod recover_text;
pub(crate) mod retain;
pub(crate) mod schema;
pub(crate) mod shell;

/// Says on standard error what opening found and did, if the last end wasn't a clean one.
pub(crate) fn tell_recovery(database: &annals::Database) {
    for finding in &database.recovered().findings {
        eprintln!("note: {finding}");
    }
}

/// Says on standard error what of the image was found damaged since it was opened, and what became of it.
pub(crate) fn tell_damage(findings: &[String]) {
    for finding in findings {
        eprintln!("note: {finding}");
    }
}

/// Says the same of what was recovered since, after another process that shares the file.
pub(crate) fn tell_later_recoveries(database: &annals::Database) {
    for finding in database.recoveries().iter().flat_map(|recovered| &recovered.findings) {
        eprintln!("note: {finding}");
    }
}
