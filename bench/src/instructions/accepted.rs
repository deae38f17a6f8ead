//! The accepted counts: a file of lines of text, so that a change shows in the history of the sources.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engines::Failure;

/// How many percent worse a count may be than the accepted one.
pub(super) const TOLERATED: f64 = 2.0;

const HEAD: &str = "\
# Instructions of one operation: `cargo run --release -p annals-bench -- instructions` counts them
# and compares; with --accept it rewrites this file.
";
const TOOLS: &str = "tools: ";

/// The last accepted counts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Accepted {
    tools: String,
    counts: BTreeMap<String, f64>,
}

impl Accepted {
    /// Reads the file; none is as good as one without counts.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        if !path.try_exists()? {
            return Ok(Self::default());
        }
        let parsed = Self::parse(&std::fs::read_to_string(path)?);
        parsed.map_err(|wrong| format!("{}: {wrong}", path.display()).into())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut accepted = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(tools) = line.strip_prefix(TOOLS) {
                tools.clone_into(&mut accepted.tools);
                continue;
            }
            let wrong = || format!("line {number} is not a count and an operation: {line}");
            let (count, name) = line.split_once(' ').ok_or_else(wrong)?;
            let count: f64 = count.parse().map_err(|_| wrong())?;
            if !count.is_finite() || count <= 0.0 {
                return Err(wrong());
            }
            if accepted.counts.insert(name.trim().to_owned(), count).is_some() {
                return Err(format!("line {number} counts an operation again: {line}"));
            }
        }
        Ok(accepted)
    }

    /// Keeps the counts, in the order of `names`; what has another name is forgotten.
    pub(super) fn write(
        &self,
        path: &Path,
        (tools, names): (&str, &[&str]),
    ) -> Result<(), Failure> {
        Ok(std::fs::write(path, self.text(tools, names))?)
    }

    fn text(&self, tools: &str, names: &[&str]) -> String {
        let mut text = format!("{HEAD}{TOOLS}{tools}\n");
        for name in names {
            if let Some(count) = self.of(name) {
                text.push_str(&format!("{count:>10.2} {name}\n"));
            }
        }
        text
    }

    /// Returns the tools that the counts were accepted with, if they were others than these.
    pub(super) fn other_tools(&self, tools: &str) -> Option<&str> {
        let differ = !self.counts.is_empty() && self.tools != tools;
        differ.then_some(&*self.tools)
    }

    pub(super) fn of(&self, name: &str) -> Option<f64> {
        self.counts.get(name).copied()
    }

    pub(super) fn set(&mut self, name: &str, count: f64) {
        self.counts.insert(name.to_owned(), count);
    }
}

/// A count beside the accepted one.
pub(super) struct Change {
    pub(super) now: f64,
    pub(super) accepted: Option<f64>,
}

impl Change {
    fn percent(&self) -> Option<f64> {
        self.accepted.map(|accepted| (self.now / accepted - 1.0) * 100.0)
    }

    /// True if it is worse by more than what is tolerated.
    pub(super) fn is_worse(&self) -> bool {
        self.percent().is_some_and(|percent| percent > TOLERATED)
    }

    /// Returns what a table shows: the count, the accepted one, the change.
    pub(super) fn cells(&self) -> [String; 3] {
        let accepted = self.accepted.map_or_else(|| "-".to_owned(), |count| format!("{count:.1}"));
        let percent = self.percent().map_or_else(|| "-".to_owned(), |part| format!("{part:+.1}%"));
        [format!("{:.1}", self.now), accepted, percent]
    }

    /// Returns a JSON line.
    pub(super) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::json!({
            "operation": name,
            "instructions": self.now,
            "accepted": self.accepted,
            "change in percent": self.percent(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut accepted = Accepted::default();
        accepted.set("insert", 85.3);
        accepted.set("scan, one row", 4.0);
        accepted.set("gone", 1.0);
        let text = accepted.text("rustc 1, valgrind 2", &["scan, one row", "insert", "new"]);
        assert_eq!(
            text.strip_prefix(HEAD).unwrap(),
            "tools: rustc 1, valgrind 2\n      4.00 scan, one row\n     85.30 insert\n"
        );
        let read = Accepted::parse(&text).unwrap();
        assert_eq!((read.of("insert"), read.of("scan, one row")), (Some(85.3), Some(4.0)));
        assert_eq!((read.of("gone"), read.of("new")), (None, None));
        assert_eq!(read.other_tools("rustc 1, valgrind 2"), None);
        assert_eq!(read.other_tools("rustc 2, valgrind 2"), Some("rustc 1, valgrind 2"));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (text, line) in [
            ("# counts\nmany insert\n", "line 2"),
            ("12\n", "line 1"),
            ("-1 insert\n", "line 1"),
            ("NaN insert\n", "line 1"),
            ("1 insert\n2 insert\n", "line 2"),
        ] {
            let wrong = Accepted::parse(text).unwrap_err();
            assert!(wrong.contains(line), "{text:?}: {wrong}");
        }
    }

    #[test]
    fn more_than_two_percent_is_worse() {
        let is_worse = |now, accepted| Change { now, accepted }.is_worse();
        assert!(!is_worse(101.9, Some(100.0)));
        assert!(is_worse(102.1, Some(100.0)));
        assert!(!is_worse(50.0, Some(100.0)));
        assert!(!is_worse(50.0, None));
        let change = Change { now: 98.0, accepted: Some(100.0) };
        assert_eq!(change.cells(), ["98.0", "100.0", "-2.0%"]);
        assert_eq!(Change { now: 98.0, accepted: None }.cells(), ["98.0", "-", "-"]);
    }
}
