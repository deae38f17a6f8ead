//! What each layer and room of the library may know: the arrows of ARCHITECTURE.md, tests included.

use super::imports::{self, Import};

/// A room, and the paths that it may name outside itself. An entry allows all that is below it.
struct Room {
    name: &'static str,
    knows: &'static [&'static str],
    /// What only its tests may name besides.
    tests: &'static [&'static str],
}

const fn room(
    name: &'static str,
    knows: &'static [&'static str],
    tests: &'static [&'static str],
) -> Room {
    Room { name, knows, tests }
}

/// The crates that `annals` puts together. That they know only those below them, the compiler says.
const LAYERS: [&str; 4] = ["annals_event", "annals_journal", "annals_storage", "annals_store"];

/// Rooms of `annals-store` that don't know the rest of it.
const ROOMS_OF_THE_STORE: [&str; 2] = ["arena", "image"];

/// The layers and rooms from the ground up; the `lib.rs` of `annals` puts them together, and knows all. Of layers
/// each knows only what its row names.
const ROOMS: &[Room] = &[
    room(
        "annals_event",
        &["annals_storage::Error", "annals_storage::ErrorKind", "annals_storage::Result"],
        &["annals_simulated"],
    ),
    room("annals_journal", &["annals_event", "annals_storage"], &[]),
    room("arena", &["annals_storage"], &[]),
    room("image", &["annals_storage"], &[]),
    // Of the image it knows how pages are stored and which root they are of.
    room(
        "annals_store",
        &[
            "annals_event",
            "annals_storage::Error",
            "annals_storage::ErrorKind",
            "annals_storage::Origin",
            "annals_storage::Result",
            "annals_storage::Violation",
            "annals_storage::bytes",
            "annals_storage::debug",
            "annals_storage::step",
            "arena",
            "image::catalog",
            "image::format",
            "image::node",
            "image::pin",
            "image::stored",
        ],
        &["annals_simulated"],
    ),
    room("progress", &["annals_storage"], &[]),
    room("trace", &[], &[]),
    room(
        "db",
        &["annals_event", "annals_journal", "annals_storage", "annals_store", "progress", "trace"],
        &[],
    ),
    room("internals", &["annals_storage::around_forks", "db", "progress"], &[]),
    room("advanced", &["annals_journal::Level", "annals_storage::Result", "typed"], &[]),
    // These two hand on what few programs need.
    room("model", &["db"], &[]),
    room("reports", &["db"], &[]),
    // Its handles pass on public types of the journal, as those of `db` do.
    room("typed", &["annals_journal::Level", "annals_storage", "annals_store", "db"], &[]),
];

/// What only `annals-storage` may name: the operating system, its clock, its threads.
const SYSTEM: [&str; 12] = [
    "io_uring",
    "libc",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
    "windows_sys",
];

/// Others that do so all the same, in product code, and why.
const SYSTEM_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("arena", "std::process::abort", "a count that overflows, as in `Arc`"),
    (
        "db",
        "std::thread",
        "the checkpointer and the background backfill are threads of the library",
    ),
];

fn is_below(path: &str, allowed: &str) -> bool {
    path.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// True for what is below an entry, and for the modules that lead to it.
fn allows(entry: &str, named: &str) -> bool {
    is_below(named, entry) || is_below(entry, named)
}

/// Returns the row of ROOMS that a module of a crate is in, by its first name; `None` for the top of `annals`.
fn owner(name: &str, module: Option<&String>) -> Option<String> {
    match (name, module) {
        ("annals", room) => room.cloned(),
        ("annals-store", Some(room)) if ROOMS_OF_THE_STORE.contains(&room.as_str()) => {
            Some(room.clone())
        }
        _ => Some(name.replace('-', "_")),
    }
}

/// Something that a module of the library names, the crate of that module, and the row that it is in.
struct Known {
    name: &'static str,
    own: String,
    import: Import,
}

impl Known {
    /// Says what is wrong with it, if anything is.
    fn complaint(&self) -> Option<String> {
        let Self { name, own, import } = self;
        let (origin, rest) = import.path.split_first()?;
        let row = ROOMS.iter().find(|room| room.name == *own);
        let allowed = |room: &Room, named: &str| {
            room.knows.iter().any(|allowed| allows(allowed, named))
                || (import.is_test && room.tests.iter().any(|allowed| allows(allowed, named)))
        };
        let named = import.path.join("::");
        let is_wrong = if origin == "crate" {
            // `crate` alone, or something that lib.rs itself defines.
            let other = owner(name, Some(rest.first()?)).filter(|other| other != own)?;
            let Some(room) = row else {
                return Some(format!("{}: the room {own} has no row", import.place));
            };
            ROOMS.iter().any(|room| room.name == other) && !allowed(room, &rest.join("::"))
        } else if LAYERS.contains(&origin.as_str()) {
            row.is_some_and(|room| !allowed(room, &named))
        } else {
            let mut elsewhere = SYSTEM_ELSEWHERE.iter();
            !import.is_test
                && own != "annals_storage"
                && SYSTEM.iter().any(|call| is_below(&named, call))
                && !elsewhere.any(|(room, allowed, _)| room == own && is_below(&named, allowed))
        };
        is_wrong.then(|| format!("{name}: {}: {own} knows {named}", import.place))
    }
}

fn all() -> Vec<Known> {
    let imports = super::LIBRARY.into_iter().flat_map(|name| {
        let imports = imports::read(&super::source_of(name)).imports().into_iter();
        imports.filter_map(move |import| {
            Some(Known { name, own: owner(name, import.module.first())?, import })
        })
    });
    imports.collect()
}

#[test]
fn rooms_know_only_what_their_row_allows() {
    let imports = all();
    assert!(imports.len() > 3000, "only {} imports were found", imports.len());
    let mut wrong: Vec<_> = imports.iter().filter_map(Known::complaint).collect();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_schema_language_knows_nothing_of_files() {
    let imports = imports::read(&super::source_of("annals-schema")).imports();
    assert!(imports.len() > 100, "only {} imports were found", imports.len());
    let calls = imports.iter().filter(|import| {
        let named = import.path.join("::");
        ["std::env", "std::fs", "std::net", "std::os", "std::process"]
            .iter()
            .any(|call| !import.is_test && is_below(&named, call))
    });
    let wrong: Vec<_> = calls.map(|call| format!("{}: {:?}", call.place, call.path)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A row that allows more than is needed hides what comes next.
#[test]
fn every_entry_of_a_row_is_used() {
    let imports = all();
    let uses = |own: &str, entry: &str, in_tests: bool| {
        imports.iter().any(|Known { own: row, import, .. }| {
            let origin = usize::from(import.path.first().is_some_and(|first| first == "crate"));
            row == own
                && (in_tests || !import.is_test)
                && is_below(&import.path[origin..].join("::"), entry)
        })
    };
    let mut idle = Vec::new();
    for room in ROOMS {
        let known = room.knows.iter().filter(|entry| !uses(room.name, entry, false));
        let in_tests = room.tests.iter().filter(|entry| !uses(room.name, entry, true));
        idle.extend(known.chain(in_tests).map(|entry| format!("{}: {entry}", room.name)));
    }
    for (room, entry, _) in SYSTEM_ELSEWHERE {
        if !uses(room, entry, false) {
            idle.push(format!("{room}: {entry}"));
        }
    }
    assert!(idle.is_empty(), "nobody needs any more:\n{}", idle.join("\n"));
}

/// What the test above sees: everything that hid an import from one that looked for `crate::room`.
#[test]
fn imports_are_seen_however_they_are_written() {
    let source = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let all = imports::of_sources(&[
        source("lib.rs", "mod a; mod b; mod c; pub(crate) use a::inner as handed;"),
        source("a/mod.rs", "pub(crate) mod inner; pub(crate) struct Whole;"),
        source("a/inner.rs", "pub(crate) struct Deep; // crate::c::Comment"),
        source(
            "b/mod.rs",
            "mod low; use crate::{a::{self, Whole}, handed}; fn f() { handed::Deep; }",
        ),
        source(
            "b/low.rs",
            "#[cfg(test)] mod tests { fn t() { super::super::super::c::Test; } }\n\
            use super::super::a::*; const C: char = '\\''; const S: &str = \"crate::c::Text\"; \
            fn g() { Whole::new(); let x = std::fs::read(); }",
        ),
        source("c/mod.rs", "pub(crate) use crate::a::inner::*; pub(crate) struct Test;"),
        source("d.rs", "fn h() { crate::c::Deep::new() }"),
    ]);
    let seen = |room: &str| -> Vec<String> {
        let imports = all
            .imports()
            .into_iter()
            .filter(|import| import.module.first().is_some_and(|own| own == room));
        let shown = imports.map(|import| {
            format!("{}{}", import.path.join("::"), if import.is_test { " in a test" } else { "" })
        });
        shown.collect()
    };
    assert_eq!(
        seen("b"),
        [
            "crate::a",
            "crate::a::Whole",
            "crate::a::inner",
            "crate::a::inner::Deep",
            "crate::c::Test in a test",
            "crate::a",
            "Whole::new",
            "std::fs::read",
        ]
    );
    assert_eq!(seen("d"), ["crate::a::inner::Deep::new"]);
}
