//! A commit that is found to count only after it was passed is in the state, too.

use annals::Level::{Half as H, Soft as S};
use annals::{Recovery, examine, inspect_in};

use super::{NAME, ends, ids, install, open, options, tear_slots_from, written};

/// The half commit 3 counts only because the frame of 5, which stands alone behind the broken 4, knows
/// that it was flushed.
fn journal() -> Vec<u8> {
    let (_, mut bytes) = written(&[(H, false), (S, false), (S, false)]);
    let ends = ends(&bytes);
    assert_eq!(tear_slots_from(&mut bytes, ends[3]), 1);
    bytes[ends[3] + 90] ^= 1;
    bytes
}

#[test]
fn a_commit_that_only_a_frame_behind_damage_proves_is_replayed() {
    let bytes = journal();
    assert_eq!(inspect_in(&install(&bytes), NAME).unwrap().end.txid, 3);
    for recovery in [Recovery::Checked, Recovery::ToHard, Recovery::ToSoft, Recovery::ToEnd] {
        let database = open(&install(&bytes), recovery).unwrap();
        assert_eq!(database.read().txid(), 3, "{recovery:?}");
        assert_eq!(ids(&database.read()), [3], "{recovery:?}");
    }
    let reader = options(Recovery::Checked).open_read_only_in(&install(&bytes), NAME).unwrap();
    assert_eq!(ids(&reader.read()), [3]);
    let examined = options(Recovery::Checked).examine_in(&install(&bytes), NAME).unwrap();
    assert_eq!(ids(&examined.snapshot), [3]);
    assert_eq!(examined.events, 5);
}

/// Recovery cuts the frame that proves it: so a slot must tell it before that.
#[test]
fn what_proved_it_is_cut_only_when_a_slot_tells_it() {
    let bytes = journal();
    let disk = install(&bytes);
    drop(open(&disk, Recovery::Checked).unwrap());
    let operations = disk.operations();
    for operation in 0..operations {
        let disk = install(&bytes);
        disk.crash_at(operation);
        drop(open(&disk, Recovery::Checked));
        let states = disk.crash_states();
        for state in [states.oldest(), states.all_but_last(), states.newest()] {
            let database = open(&state, Recovery::Checked).unwrap();
            assert_eq!(database.read().txid(), 3, "crashed at {operation}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_not_examined() {
    let missing = examine("there/is/no/such/file").unwrap_err();
    assert_ne!(missing.kind(), annals::ErrorKind::Corrupt);
}
