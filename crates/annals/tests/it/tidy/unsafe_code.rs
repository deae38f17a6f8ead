//! Unsafe code says why it is sound, and Miri runs it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::imports::{Names, module_of};
use super::tokens::{Kind, tokens};

#[test]
fn unsafe_code_gives_its_reason() {
    let mut wrong = Vec::new();
    let files = super::files(&super::root().join("crates"), ".rs");
    for path in files.into_iter().filter(|path| !super::is_generated(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let is_unsafe = code.contains(concat!("unsa", "fe {"))
                || code.starts_with(concat!("unsa", "fe impl"));
            let said =
                lines[number.saturating_sub(4)..=number].iter().any(|l| l.contains("SAFETY"));
            if is_unsafe && !code.starts_with("//") && !said {
                wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Modules whose unsafe code is a call of the system that Miri doesn't have.
const CALLS_OF_THE_SYSTEM: [(&str, &str); 4] = [
    ("storage::identity", "asks Windows for the number of a file"),
    ("storage::lock", "locks ranges of a file"),
    ("storage::process", "asks whether a process is there"),
    ("storage::uring", "has the kernel read memory; what keeps that in place is in `pump`"),
];

/// What there is of a module.
#[derive(Default)]
struct Facts {
    has_unsafe: bool,
    tests: usize,
    /// How many of these Miri leaves out.
    left_out: usize,
}

/// Returns the module that a file's tests are of, and whether the file has only tests.
fn tested(mut module: Names) -> (Names, bool) {
    let last = module.pop().unwrap_or_default();
    if last == "tests" {
        return (module, true);
    }
    match last.strip_suffix("_tests") {
        Some(tested) => (module.into_iter().chain([tested.to_owned()]).collect(), true),
        None => (module.into_iter().chain([last]).collect(), false),
    }
}

/// Returns what there is of all modules of the library. Those of a crate `annals-part` begin with `part`.
fn facts() -> BTreeMap<Names, Facts> {
    let mut all = BTreeMap::new();
    for name in super::LIBRARY.into_iter().chain(["annals-arrow"]) {
        let source = super::source_of(name);
        let part = name.strip_prefix("annals-").map(str::to_owned);
        for path in super::files(&source, ".rs") {
            let (module, is_test) = tested(module_of(path.strip_prefix(&source).unwrap()));
            let module = part.clone().into_iter().chain(module).collect();
            add_file(all.entry(module).or_default(), &path, is_test);
        }
    }
    all
}

fn add_file(facts: &mut Facts, path: &Path, is_test: bool) {
    let words: Vec<_> = tokens(&fs::read_to_string(path).unwrap())
        .into_iter()
        .filter_map(|token| match token.kind {
            Kind::Word(word) => Some(word),
            Kind::Mark(mark) => Some(mark.to_string()),
            Kind::Text(_) | Kind::Path => None,
        })
        .collect();
    facts.has_unsafe |= !is_test && words.iter().any(|word| word == concat!("unsa", "fe"));
    let count =
        |wanted: &[&str]| words.windows(wanted.len()).filter(|words| **words == *wanted).count();
    facts.tests += count(&["#", "[", "test", "]"]);
    facts.left_out += count(&["#", "[", "cfg_attr", "(", "miri", ",", "ignore"]);
}

/// The modules whose unsafe code Miri can run.
fn modules_for_miri() -> Vec<String> {
    let with_unsafe = facts().into_iter().filter(|(_, facts)| facts.has_unsafe);
    let names = with_unsafe.map(|(module, _)| module.join("::"));
    names.filter(|module| !CALLS_OF_THE_SYSTEM.iter().any(|(call, _)| call == module)).collect()
}

#[test]
fn miri_runs_tests_of_every_module_with_unsafe_code() {
    let facts = facts();
    for module in modules_for_miri() {
        // A part of a module may be tested with the whole.
        let prefixes = (1..=module.split("::").count())
            .map(|len| module.split("::").take(len).map(str::to_owned).collect::<Names>());
        let runs = |facts: &Facts| facts.has_unsafe && facts.tests > facts.left_out;
        let mut known = prefixes.filter_map(|prefix| facts.get(&prefix));
        assert!(known.any(runs), "{module}: has no test that Miri runs");
    }
    for (module, _) in CALLS_OF_THE_SYSTEM {
        let names: Names = module.split("::").map(str::to_owned).collect();
        assert!(facts.get(&names).is_some_and(|facts| facts.has_unsafe), "{module}: is gone");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_list_for_miri_has_every_module_with_unsafe_code() {
    let script = super::root().join(".ci/miri");
    let listed = std::process::Command::new("bash").arg(script).arg("list").output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), modules_for_miri());
}
