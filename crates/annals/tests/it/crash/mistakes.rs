//! Deliberate mistakes in commit and recovery: each must be found by the test of this module that
//! `docs/crash.md` names, which is thereby seen to fail.

use annals::journal::mistakes::{Mistake, make};

use super::explore::{Effort, Explorer};
use super::history::Checked;

/// How one kind of test explores one workload.
type Test = (&'static str, &'static str, fn(&Explorer, &str) -> Checked);

const TESTS: [Test; 5] = [
    ("power_cut_at_every_operation", "mixed", Explorer::power),
    ("process_killed_at_every_operation", "mixed", Explorer::kill),
    ("every_operation_fails_in_every_way", "mixed", Explorer::faults),
    ("power_cut_in_long_transactions", "streaming", Explorer::power),
    ("power_cut_in_long_transactions", "streaming", Explorer::kill),
];

/// Makes no mistake again when it goes.
struct Made;

impl Drop for Made {
    fn drop(&mut self) {
        make(None);
    }
}

/// Gives what the tests of this name find, with less effort than they have by themselves.
fn find(mistake: Option<Mistake>, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    make(mistake);
    let _made = Made;
    TESTS.into_iter().filter(|(name, ..)| is_wanted(name)).find_map(|(_, kind, how)| {
        let (samples, again, killed) = match kind {
            "mixed" => ([8, 4, 0], [4, 0], 300),
            _ => ([6, 2, 0], [0, 0], 0),
        };
        let effort = Effort { few: [8, 16, 0], samples, again, killed, faults: 3, reads: 0 };
        let explorer = Explorer::new(effort);
        (0..4).find_map(|seed| how(&explorer, &format!("{kind}-{seed}")).err())
    })
}

/// Gives the test that the document says finds a mistake.
fn documented(document: &str, mistake: Mistake) -> String {
    let start = format!("| `{mistake:?}` | `");
    let row = document.lines().find_map(|line| line.strip_prefix(&start));
    let row = row.unwrap_or_else(|| panic!("docs/crash.md has no row for {mistake:?}"));
    row.split('`').next().unwrap().to_owned()
}

#[test]
fn each_mistake_is_found() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/crash.md");
    let document = std::fs::read_to_string(path).unwrap();
    for mistake in Mistake::ALL {
        let test = documented(&document, mistake);
        let Some(found) = find(Some(mistake), |name| name == test) else {
            panic!("{test} doesn't find {mistake:?}");
        };
        println!("{mistake:?}: {test}: {}", found.lines().next().unwrap_or_default());
    }
}

#[test]
fn without_a_mistake_nothing_is_found() {
    assert_eq!(find(None, |_| true), None);
}
