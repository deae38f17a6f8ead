//! The extension in programs that load it: the distribution's `sqlite3`, and Python.
//!
//! `cargo build --release --manifest-path crates/annals-sqlite/Cargo.toml` makes it; without it, or without the programs,
//! these tests say that they are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shop::{city, shop};

/// Returns the extension that was built last, if any was.
fn library() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../annals-sqlite/target");
    let built = ["release", "debug"].map(|kind| target.join(kind).join("libannals_sqlite.so"));
    let age = |path: &PathBuf| path.metadata().and_then(|it| it.modified()).ok();
    let found = built.into_iter().filter(|path| path.exists()).max_by_key(age);
    if found.is_none() {
        annals_untested::untested(
            "no extension; cargo build --release --manifest-path crates/annals-sqlite/Cargo.toml",
        );
    }
    found
}

fn build(folder: &Path) -> PathBuf {
    let path = folder.join("shop.annals");
    let db = shop::Database::open(&path).unwrap();
    for (name, people) in [("Lille", 230), ("Lyon", 520)] {
        let new = city::New {
            name,
            size: Some(city::Size::Town),
            people: Some(people),
            area: None,
            founded: None,
        };
        db.write(|tx| Ok(tx.insert(new)?)).unwrap();
    }
    db.close().unwrap();
    path
}

/// Runs a program; `None`, with a word, if it isn't there.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<(String, String)> {
    use std::io::Write as _;
    use std::process::Stdio;
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        annals_untested::untested(&format!("{program} isn't installed"));
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.code().is_some(), "{program} crashed: {done:?}");
    let [out, err] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
    Some((out, err))
}

#[test]
fn sqlite3_reads_our_tables() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = build(folder.path());
    let script = format!(
        ".bail off\n.load {}\nSELECT annals_attach('{}');\n\
         SELECT id, name, people FROM city WHERE name LIKE 'l%' ORDER BY name DESC;\n\
         SELECT count(*) FROM city_at(annals_txid() - 1);\n\
         SELECT txid, kind, new_people FROM city_history(1);\n\
         SELECT max(size COLLATE \"annals_enum(village,town,capital)\") FROM city;\n\
         SELECT annals_attach('{1}');\nSELECT annals_attach('{1}', 'old_');\nSELECT count(*) FROM old_city WHERE annals_txid('old_') > 1;\n\
         INSERT INTO city(name) VALUES('x');\nSELECT annals_attach('/nowhere');\nSELECT count(*) FROM city;\n",
        library.display(),
        file.display()
    );
    let Some((out, err)) = run("sqlite3", &[":memory:"], &script) else { return };
    if err.contains("unknown command") || err.contains("not authorized") {
        return annals_untested::untested("the sqlite3 here loads no extensions");
    }
    let lines: Vec<_> = out.lines().filter(|line| !line.contains(" tables of ")).collect();
    assert_eq!(
        lines,
        ["1|Lyon|520", "0|Lille|230", "1", "3|insert|520", "town", "2", "2"],
        "{out}\n{err}"
    );
    assert_eq!(out.matches("3 tables of").count(), 3, "{out}");
    assert!(err.contains("SQL reads"), "{err}");
    assert!(err.contains("/nowhere"), "{err}");
}

/// Queries whose answers differ if a condition in the ON of an outer join narrows the search of a table, and more that
/// an older SQLite passes on in another way; each with its answer.
const OUTER: [(&str, &str); 12] = [
    ("SELECT c.id FROM city c LEFT JOIN n ON c.name GLOB 'Li*' ORDER BY 1", "0 1"),
    ("SELECT c.id FROM city c LEFT JOIN n ON c.name LIKE 'li%' ORDER BY 1", "0 1"),
    ("SELECT c.id FROM city c LEFT JOIN n ON c.name = 'Lille' ORDER BY 1", "0 1"),
    ("SELECT c.id FROM city c LEFT JOIN n ON c.name > 'Lim' ORDER BY 1", "0 1"),
    ("SELECT n.x, c.id FROM n LEFT JOIN city c ON c.name GLOB 'Ly*'", "7|1"),
    ("SELECT n.x, c.id FROM n LEFT JOIN city c ON c.name LIKE 'x%'", "7|NULL"),
    ("SELECT n.x, c.id FROM n LEFT JOIN city c ON c.id = 1 AND n.x = 8", "7|NULL"),
    (
        "SELECT c.id, d.id FROM city c LEFT JOIN city d ON d.people = c.people AND d.id = 0 ORDER BY 1",
        "0|0 1|NULL",
    ),
    (
        "SELECT c.id, h.id FROM city c LEFT JOIN city_history(1) h ON h.id = c.id ORDER BY 1",
        "0|NULL 1|1",
    ),
    ("SELECT id FROM city WHERE name IN (SELECT 5 UNION SELECT 'Lyon')", "1"),
    ("SELECT id FROM city_history(1) WHERE id IN (0, 1)", "1"),
    ("SELECT sum(annals_uint64('18446744073709551615'))", "1.84467440737096e+19"),
];

/// SQLite has these joins since 3.39.
const OUTER_SINCE_39: [(&str, &str); 2] = [
    ("SELECT c.id FROM n RIGHT JOIN city c ON c.name GLOB 'Li*' ORDER BY 1", "0 1"),
    ("SELECT c.id FROM city c FULL JOIN n ON c.name LIKE 'li%' ORDER BY 1", "0 1"),
];

#[test]
fn outer_joins_keep_their_rows() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = build(folder.path());
    let begin = format!(
        ".nullvalue NULL\n.load {}\nSELECT annals_attach('{}');\nCREATE TABLE n(x); INSERT INTO n VALUES(7);\n",
        library.display(),
        file.display()
    );
    let Some((version, _)) = run("sqlite3", &["--version"], "") else { return };
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap();
    let newer = if minor >= 39 { &OUTER_SINCE_39[..] } else { &[] };
    for (query, expected) in OUTER.iter().chain(newer) {
        let script = format!("{begin}{query};\n");
        let Some((out, err)) = run("sqlite3", &[":memory:"], &script) else { return };
        if err.contains("unknown command") || err.contains("not authorized") {
            return annals_untested::untested("the sqlite3 here loads no extensions");
        }
        let lines: Vec<_> = out.lines().filter(|line| !line.contains(" tables of ")).collect();
        assert_eq!(lines.join(" "), *expected, "{query}, by {version}: {err}");
    }
}

#[test]
fn python_reads_our_tables() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = build(folder.path());
    let script = format!(
        "import sqlite3, sys\n\
         c = sqlite3.connect(':memory:')\n\
         if not hasattr(c, 'enable_load_extension'):\n    print('no extensions'); sys.exit()\n\
         c.enable_load_extension(True)\nc.load_extension({:?})\n\
         c.execute('SELECT annals_attach(?)', ({:?},))\n\
         print(c.execute('SELECT name FROM city WHERE people > ? ORDER BY id', (300,)).fetchall())\n\
         print(c.execute('SELECT kind, count(*) FROM city_history GROUP BY 1').fetchall())\n",
        library.to_str().unwrap(),
        file.to_str().unwrap()
    );
    for python in ["/usr/bin/python3", "python3"] {
        let Some((out, err)) = run(python, &["-"], &script) else { continue };
        if out.contains("no extensions") {
            annals_untested::untested(&format!("the sqlite3 of {python} loads no extensions"));
            continue;
        }
        assert_eq!(out, "[('Lyon',)]\n[('insert', 2)]\n", "{err}");
        return;
    }
}
