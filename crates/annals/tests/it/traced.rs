//! The feature `tracing`: which spans and events there are, and that none has data of rows.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use annals::storage::{Access, Directory as _, FileDirectory};
use annals::{BackfillMode, Options};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::generated_for_tests::tutorial;

/// Collects spans and events as text.
#[derive(Clone, Default)]
struct Collector {
    lines: Arc<Mutex<Vec<String>>>,
    last: Arc<AtomicU64>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Collector {
    fn add(&self, kind: &str, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        assert_eq!(metadata.target(), "annals");
        let mut line = Line(format!("{} {kind}", metadata.level()));
        record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    /// Returns the lines, and forgets them.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "annals"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata().name(), span.metadata(), |line| span.record(line));
        Id::from_u64(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.add("event", event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn open(path: &Path) -> tutorial::Database {
    tutorial::Database::open_with(path, &Options::new().background(false)).unwrap()
}

#[test]
fn what_happens_is_traced_without_data() {
    let collector = Collector::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.annals");
    // With a single one, tracing asks only the thread that comes first to an event, and those of other tests have none.
    let _second = tracing::Dispatch::new(Collector::default());
    let traced = tracing::subscriber::set_default(collector.clone());
    let has = |lines: &[String], parts: &[&str]| {
        let found = lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no {parts:?} in {lines:#?}");
    };
    let mut all = Vec::new();
    let mut lines = || {
        let lines = collector.take();
        all.extend(lines.clone());
        lines
    };

    let db = open(&path);
    let opened = lines();
    has(&opened, &["INFO open", "db.annals"]);
    has(&opened, &["opened", "txid=0"]);

    db.write(|tx| {
        tx.comment("confidential")?;
        Ok(tx.insert(tutorial::city::New { name: "Secret City" })?)
    })
    .unwrap();
    let refused = db.write(|tx| Ok(tx.insert(tutorial::city::New { name: "Secret City" })?));
    assert!(refused.is_err());
    let written = lines();
    has(&written, &["DEBUG commit"]);
    has(&written, &["committed", "txid=2", "level=\"checksummed\""]);
    has(&written, &["TRACE event", "flushed", "txid=2"]);

    db.backfill(BackfillMode::Full).unwrap();
    let saved = lines();
    has(&saved, &["INFO backfill", "mode=\"full\""]);
    has(&saved, &["backfilled", "txid=2", "is_postponed=false"]);

    // An end without closing, and a damaged image.
    std::mem::forget((*db).begin().unwrap());
    let copy = folder.path().join("copy.annals");
    std::fs::copy(&path, &copy).unwrap();
    let reopened = open(&copy);
    has(&lines(), &["recovered after an unclean end", "cut_commits=0"]);
    reopened.close().unwrap();
    has(&lines(), &["closed", "is_ok=true"]);
    let image = FileDirectory::new(folder.path()).open("db.annals-image", Access::Write).unwrap();
    let end = image.len().unwrap();
    image.write_at(16384, &vec![0x55; usize::try_from(end - 16384).unwrap()]).unwrap();
    let check = annals_tools::check_image(&Options::new(), &path).unwrap().unwrap();
    assert!(check.problem.is_some());
    has(&lines(), &["WARN", "a check found damage"]);

    drop(traced);
    drop(open(&folder.path().join("other.annals")));
    assert!(lines().is_empty());
    for line in all {
        assert!(!line.contains("Secret") && !line.contains("confidential"), "{line}");
    }
}
