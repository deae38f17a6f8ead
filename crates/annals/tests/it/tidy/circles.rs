//! Few circles: files and folders of one folder that name each other, directly or by way of others.
//!
//! What a file names are its `use` items and the paths in its code, tests included, by whatever name it was handed on.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{self, Crate, Names};

/// The most siblings that may be in one circle.
const MOST: usize = 3;
/// The most circles of all crates together. Five of them are closed by tests alone.
const MOST_CIRCLES: usize = 13;

/// Who names whom, among the files and folders of one folder.
type Siblings = BTreeMap<String, BTreeSet<String>>;

/// Returns the siblings of each folder of a crate.
fn folders(all: &Crate) -> BTreeMap<Names, Siblings> {
    let mut folders: BTreeMap<Names, Siblings> = BTreeMap::new();
    for (from, to) in all.links() {
        let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        // A file that has the folder is no sibling of those in it.
        if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
            let siblings = folders.entry(from[..shared].to_vec()).or_default();
            siblings.entry(one.clone()).or_default().insert(other.clone());
        }
    }
    folders
}

/// Returns all that a sibling leads to.
fn reached(siblings: &Siblings, from: &str) -> BTreeSet<String> {
    let (mut found, mut rest) = (BTreeSet::new(), vec![from]);
    while let Some(next) = rest.pop() {
        for other in siblings.get(next).into_iter().flatten() {
            if found.insert(other.clone()) {
                rest.push(other);
            }
        }
    }
    found
}

/// Returns the circles of siblings.
fn circles(siblings: &Siblings) -> BTreeSet<BTreeSet<String>> {
    let all: BTreeMap<_, _> = siblings.keys().map(|name| (name, reached(siblings, name))).collect();
    let circle = |name: &String| -> BTreeSet<String> {
        let back = |other: &&String| all.get(other).is_some_and(|found| found.contains(name));
        all[name].iter().filter(back).cloned().collect()
    };
    siblings.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn few_siblings_name_each_other_in_a_circle() {
    let (mut wrong, mut found) = (Vec::new(), Vec::new());
    let mut folders_seen = 0;
    for package in std::fs::read_dir(super::root().join("crates")).unwrap() {
        let package = package.unwrap();
        let crate_name = package.file_name().to_string_lossy().into_owned();
        let all = imports::read(&package.path().join("src"));
        for (folder, siblings) in folders(&all) {
            let place = std::iter::once(crate_name.clone()).chain(folder).collect::<Vec<_>>();
            let place = place.join("/");
            folders_seen += 1;
            for circle in circles(&siblings) {
                let names = circle.iter().cloned().collect::<Vec<_>>().join(" ");
                if circle.len() > MOST {
                    let len = circle.len();
                    wrong.push(format!("{place}: {len} in a circle, {MOST} at most: {names}"));
                }
                found.push(format!("{place}: {names}"));
            }
        }
    }
    assert!(folders_seen > 40, "only {folders_seen} folders were seen");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (len, found) = (found.len(), found.join("\n"));
    assert!(len <= MOST_CIRCLES, "{len} circles, {MOST_CIRCLES} at most:\n{found}");
}

#[test]
fn circles_are_seen_through_other_names_and_in_tests() {
    let source = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let all = imports::of_sources(&[
        source("lib.rs", "mod room; mod other; pub(crate) use room::a::One as Handed;"),
        source("other.rs", "use crate::Handed;"),
        source("room/mod.rs", "mod a; mod b; mod c; mod d; pub(crate) use b::Two;"),
        source("room/a.rs", "use super::Two; pub(crate) struct One;"),
        source("room/b.rs", "pub(crate) struct Two; fn f() { super::c::g(); }"),
        source("room/c.rs", "#[cfg(test)] mod tests { use crate::Handed; } pub(crate) fn g() {}"),
        source("room/d.rs", "use super::a::One; use crate::other;"),
    ]);
    let folders = folders(&all);
    let circle = |folder: &[&str]| -> Vec<String> {
        let folder: Names = folder.iter().map(|name| (*name).to_owned()).collect();
        circles(&folders[&folder]).into_iter().flatten().collect()
    };
    assert_eq!(circle(&["room"]), ["a", "b", "c"]);
    assert_eq!(circle(&[]), ["other", "room"]);
}
