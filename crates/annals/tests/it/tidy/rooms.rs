//! The rooms of an open database lie in one direction: each imports from those after it, with few exceptions.

use std::collections::BTreeSet;

use super::imports::{self, Crate};

/// The rooms of `db`, from the doors to the ground.
const ROOMS: [&str; 6] = ["api", "past", "image", "write", "follow", "present"];
/// The most imports of a file from one in a room before its own.
const MOST: usize = 7;

/// Returns the imports against the order of the rooms, as `file -> file`.
fn against_the_order(all: &Crate) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (from, to) in all.product_links() {
        let room = |file: &[String]| match file {
            [db, room, ..] if db == "db" => ROOMS.iter().position(|name| name == room),
            _ => None,
        };
        if room(&to).zip(room(&from)).is_some_and(|(to, from)| to < from) {
            found.insert(format!("{} -> {}", from.join("/"), to.join("/")));
        }
    }
    found
}

#[test]
fn rooms_of_an_open_database_lie_in_one_direction() {
    let source = super::source_of("annals");
    let folders = std::fs::read_dir(source.join("db")).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let folders: BTreeSet<_> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, ROOMS.map(str::to_owned).into());
    let found = against_the_order(&imports::read(&source));
    let (len, found) = (found.len(), found.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(len <= MOST, "{len} imports against the order, {MOST} at most:\n{found}");
}

#[test]
fn an_import_against_the_order_is_seen() {
    let source = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let all = imports::of_sources(&[
        source("lib.rs", "mod db;"),
        source("db/mod.rs", "mod image; mod write;"),
        source("db/image/mod.rs", "mod low; use crate::db::write::Write; pub(super) use low::Low;"),
        source("db/image/low.rs", "pub(in crate::db) struct Low;"),
        source(
            "db/write/mod.rs",
            "pub(super) struct Write; fn f() { super::image::Low; } #[cfg(test)] mod tests { use crate::db::image; }",
        ),
    ]);
    let found: Vec<_> = against_the_order(&all).into_iter().collect();
    assert_eq!(found, ["db/write -> db/image/low"]);
}
