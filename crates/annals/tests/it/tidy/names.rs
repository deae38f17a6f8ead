//! One name for one thing: how many types of the library share a name, and how many names a program sees first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::tokens::{Kind, tokens};

/// The most names that types in three files or more have.
const SHARED: usize = 5;
/// The most names at the root of the library. What few programs need is in its modules.
const AT_ROOT: usize = 80;

fn words(source: &str) -> Vec<Kind> {
    tokens(source).into_iter().map(|token| token.kind).collect()
}

/// Returns the names of types that a file defines, tests in it included.
fn types(source: &str) -> BTreeSet<String> {
    let is_type = |kind: &Kind| matches!(kind, Kind::Word(word) if ["struct", "enum", "trait", "union"].contains(&&**word));
    let name = |kind: &Kind| match kind {
        Kind::Word(name) => Some(name.clone()),
        _ => None,
    };
    words(source)
        .windows(2)
        .filter(|pair| is_type(&pair[0]))
        .filter_map(|it| name(&it[1]))
        .collect()
}

/// Returns the names that the root of a crate hands on by `pub use`.
fn handed_on(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let words = words(source);
    let word = |at: usize, text: &str| matches!(&words[at], Kind::Word(word) if word == text);
    for at in 1..words.len() {
        if !(word(at - 1, "pub") && word(at, "use")) {
            continue;
        }
        let item: Vec<_> =
            words[at..].iter().take_while(|kind| **kind != Kind::Mark(';')).collect();
        for (place, kind) in item.iter().enumerate() {
            let next = item.get(place + 1);
            let is_last = next.is_none_or(|next| matches!(next, Kind::Mark(',' | '}')));
            if let Kind::Word(name) = kind
                && is_last
            {
                found.insert(name.clone());
            }
        }
    }
    found
}

fn sources() -> Vec<PathBuf> {
    let all = super::LIBRARY.iter().flat_map(|name| super::files(&super::source_of(name), ".rs"));
    all.filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs")).collect()
}

#[test]
fn few_types_share_a_name() {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let shown = path.strip_prefix(super::root()).unwrap().display().to_string();
        types(source)
            .into_iter()
            .for_each(|name| homes.entry(name).or_default().push(shown.clone()));
    }
    assert!(homes.len() > 500, "only {} types were seen", homes.len());
    homes.retain(|_, files| files.len() > 2);
    let shown: Vec<_> =
        homes.iter().map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(homes.len() <= SHARED, "{SHARED} at most:\n{}", shown.join("\n"));
}

#[test]
fn the_root_of_the_library_has_few_names() {
    let root = fs::read_to_string(super::source_of("annals").join("lib.rs")).unwrap();
    let names = handed_on(&root);
    assert!(names.len() > 50, "{names:?}");
    assert!(names.len() <= AT_ROOT, "{} names, {AT_ROOT} at most: {names:?}", names.len());
}

#[test]
fn names_are_seen() {
    let source = "pub use a::{B, c::D as E};\n/// struct No\npub(crate) use f::G; pub use h; struct I; enum J { K }";
    assert_eq!(handed_on(source).into_iter().collect::<Vec<_>>(), ["B", "E", "h"]);
    assert_eq!(types(source).into_iter().collect::<Vec<_>>(), ["I", "J"]);
}
