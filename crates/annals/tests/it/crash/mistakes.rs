//! Deliberate mistakes in commit and recovery: each must be found by the tests of this module,
//! which are thereby seen to fail.

use annals::journal::mistakes::{Mistake, make};

use super::explore::{Effort, Explorer};
use super::history::Checked;

/// How one kind of test explores one workload.
type Test = (&'static str, &'static str, fn(&Explorer, &str) -> Checked);

/// Makes no mistake again when it goes.
struct Made;

impl Drop for Made {
    fn drop(&mut self) {
        make(None);
    }
}

/// Gives the test that finds a mistake, and what it says.
fn find(mistake: Option<Mistake>) -> Option<(&'static str, String)> {
    make(mistake);
    let _made = Made;
    let tests: [Test; 5] = [
        ("power_cut_at_every_operation", "mixed", Explorer::power),
        ("process_killed_at_every_operation", "mixed", Explorer::kill),
        ("every_operation_fails_in_every_way", "mixed", Explorer::faults),
        ("power_cut_in_long_transactions", "streaming", Explorer::power),
        ("power_cut_in_long_transactions", "streaming", Explorer::kill),
    ];
    for (test, kind, how) in tests {
        let samples = if kind == "mixed" { [8, 4] } else { [6, 2] };
        let again = if kind == "mixed" { [4, 300] } else { [0, 0] };
        let effort = Effort { few: [8, 16], samples, again, faults: 3 };
        let explorer = Explorer::new(effort);
        let found = (0..4).find_map(|seed| how(&explorer, &format!("{kind}-{seed}")).err());
        if let Some(text) = found {
            return Some((test, text));
        }
    }
    None
}

#[test]
fn each_mistake_is_found() {
    let mut table = String::new();
    for mistake in Mistake::ALL {
        let Some((test, text)) = find(Some(mistake)) else {
            panic!("nothing finds {mistake:?}");
        };
        let text = text.lines().next().unwrap_or_default();
        println!("{mistake:?}: {test}: {text}");
        table += &format!("| `{mistake:?}` | `{test}` |\n");
    }
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/crash.md");
    let document = std::fs::read_to_string(document).unwrap();
    for line in table.lines() {
        assert!(document.contains(line), "docs/crash.md doesn't say:\n{line}\nof all:\n{table}");
    }
}

#[test]
fn without_a_mistake_nothing_is_found() {
    assert_eq!(find(None), None);
}
