//! Messages of version 1, which every later version must read. They are never written again; `UPDATE=1` only writes them if
//! they are missing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use annals_replica::shared_log::Message;

use super::simulated::{Faults, Simulated};
use super::{Member, add, additions, create};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// What a node says of its log: where it ends, what doesn't count, and the additions.
fn described(member: &Member) -> String {
    let (end, counts) = (member.cursor(), member.log.counts());
    let names = additions(&member.replica.read()).1.join(" ").replace('x', "");
    format!(
        "{} {:016x}, {} void, {} skipped: {names}",
        end.txid, end.chain, counts.void, counts.skipped
    )
}

/// Makes a log with messages of every kind: a beginning, frames, parts, fences, garbage.
fn make() -> String {
    let log = Simulated::new(11, Faults::default());
    let member = Member::join(Arc::new(log.clone())).expect("a node");
    member.replica.transaction(create).expect("the schema");
    log.poison(b"garbage".to_vec());
    log.set_faults(Faults { lost: 70, ..Faults::default() });
    for name in ["one", "two", "three"] {
        member.replica.transaction(|tx| add(tx, name)).expect("an addition");
    }
    log.set_faults(Faults::default());
    let long = "x".repeat(6 << 10);
    member.replica.transaction(|tx| add(tx, &long)).expect("an addition in parts");
    let late = Member::join(Arc::new(log.clone())).expect("a node");
    let mut text = described(&late) + "\n";
    for Message { time, bytes, .. } in log.messages() {
        writeln!(text, "{time} {}", hex(&bytes)).expect("text");
    }
    text
}

#[test]
fn messages_of_version_1_are_read() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/v1-log.txt");
    if !path.exists() && std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, make()).expect("a file");
    }
    let text = std::fs::read_to_string(&path).expect("a file");
    let (said, messages) = text.split_once('\n').expect("lines");
    let messages = messages.lines().zip(1..).map(|(line, sequence)| {
        let (time, bytes) = line.split_once(' ').expect("a time");
        Message { sequence, time: time.parse().expect("a number"), bytes: unhex(bytes).into() }
    });
    let log = Simulated::of(messages.collect());
    let kinds: Vec<u8> = log.messages().iter().map(|it| it.bytes[5]).collect();
    assert!([1, 2, 3].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    let member = Member::join(Arc::new(log)).expect("a node");
    assert_eq!(described(&member), said);
    member.replica.transaction(|tx| add(tx, "more")).expect("an addition");
}
