//! Each mode keeps what it says, cuts the rest, saves it and reports it.

use annals::Level::{Checksummed as C, Half as H, Soft as S};
use annals::{ErrorKind, Recovery};
use annals_tools::inspect_in;

use super::{NAME, ends, ids, install, open, options, tear_slots_from, written};

/// Opens the file in a mode; checks the report and the saved tail. Gives the last transaction.
fn opened(bytes: &[u8], recovery: Recovery) -> u64 {
    let disk = install(bytes);
    let database = open(&disk, recovery).unwrap();
    let point = database.read().point();
    let rows: Vec<u64> = (3..=point.txid.0).collect();
    assert_eq!(ids(&database.read()), rows, "{recovery:?}");
    database.read().check().unwrap();
    let end = usize::try_from(point.position).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let recovered = database.recovered().clone();
    match &recovered.cut {
        None => assert!(last <= end, "{recovery:?}: cut in silence"),
        Some(cut) => {
            assert_eq!((cut.position, cut.txid), (point.position, point.txid));
            assert_eq!(cut.bytes, (last - end) as u64);
            let saved = cut.saved_as.as_ref().unwrap().strip_prefix("simulated:").unwrap();
            assert_eq!(saved, format!("journal.tail-{}-{:016x}", point.txid, point.chain));
            assert_eq!(disk.content(saved).unwrap(), &bytes[end..last]);
            assert!(recovered.findings[0].contains(saved), "{:?}", recovered.findings);
        }
    }
    let content = disk.content(NAME).unwrap();
    assert!(content[end..].iter().all(|byte| *byte == 0), "{recovery:?}");
    database.close().unwrap();
    let inspection = inspect_in(&annals::Options::new(), &disk, NAME).unwrap();
    assert!(inspection.is_closed(), "{recovery:?}");
    assert_eq!(inspection.end, point);
    point.txid.0
}

fn all_modes(bytes: &[u8]) -> [u64; 4] {
    [Recovery::ToHard, Recovery::ToSoft, Recovery::Checked, Recovery::ToEnd]
        .map(|recovery| opened(bytes, recovery))
}

#[test]
fn each_mode_goes_back_to_its_end() {
    // 1 and 2 are the schema.
    let (_, bytes) = written(&[(C, false), (S, true), (S, false), (S, false)]);
    // Frame 6 knows that 3 was flushed; the live block tells 4.
    assert_eq!(all_modes(&bytes), [3, 4, 6, 6]);

    let (_, mut bytes) = written(&[(C, false), (S, false), (H, false)]);
    assert_eq!(all_modes(&bytes), [5, 5, 5, 5], "a slot tells the half commit");
    let position = *ends(&bytes).last().unwrap();
    assert_eq!(tear_slots_from(&mut bytes, position), 1);
    // Its chain verifies; that 3 was flushed its own frame proves.
    assert_eq!(all_modes(&bytes), [3, 3, 5, 5]);

    let (_, bytes) = written(&[(C, true)]);
    assert_eq!(all_modes(&bytes), [3, 3, 3, 3], "the live block tells that it was flushed");
}

#[test]
fn the_live_block_is_not_believed_against_the_frames() {
    let (_, bytes) = written(&[(C, false), (S, false), (S, true), (S, false)]);
    assert_eq!(opened(&bytes, Recovery::ToSoft), 5);
    let with_live = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = bytes.clone();
        for copy in [12288, 12288 + 512] {
            change(&mut bytes[copy..copy + 64]);
            let sum = annals::journal::format::hash(&bytes[copy..copy + 56]);
            bytes[copy + 56..copy + 64].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    };
    // Of another history: another chain, a position where no transaction ends.
    assert_eq!(opened(&with_live(&|live| live[32] ^= 1), Recovery::ToSoft), 3);
    assert_eq!(opened(&with_live(&|live| live[8] ^= 8), Recovery::ToSoft), 3);
    // It tells more than there is, and nothing at all.
    assert_eq!(opened(&with_live(&|live| live[12] = 1), Recovery::ToSoft), 6);
    let mut without = bytes.clone();
    without[12288..13312].fill(0);
    assert_eq!(opened(&without, Recovery::ToSoft), 3);
}

#[test]
fn a_tail_that_does_not_verify_is_cut_in_each_mode() {
    let (_, mut bytes) = written(&[(C, false), (S, true), (S, false), (S, false)]);
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last - 20] ^= 1;
    assert_eq!(all_modes(&bytes), [3, 4, 5, 5]);
}

#[test]
fn none_helps_against_damage() {
    let (_, bytes) = written(&[(C, false), (C, false), (S, false), (S, false)]);
    let ends = ends(&bytes);
    for at in [ends[2] + 40, ends[3] + 40] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        for recovery in [
            Recovery::Checked,
            Recovery::Refuse,
            Recovery::ToHard,
            Recovery::ToSoft,
            Recovery::ToEnd,
        ] {
            let disk = install(&bytes);
            let error = open(&disk, recovery).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{recovery:?}: {error}");
            let text = error.to_string();
            let command = "`annals recover simulated:journal --salvage NEW`";
            assert!(text.contains(command) && text.contains("damaged at position"), "{text}");
            assert!(text.contains("transactions ") && text.contains("can't be read"), "{text}");
            assert_eq!(disk.content(NAME).unwrap(), bytes);
            assert_eq!(disk.transcript(), "");
        }
    }
}

#[test]
fn refusing_says_the_command() {
    let (_, mut bytes) = written(&[(C, false), (S, false)]);
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last - 20] ^= 1;
    let error = open(&install(&bytes), Recovery::Refuse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NeedsRecovery);
    let text = error.to_string();
    assert!(text.contains("`annals recover simulated:journal --dry-run`"), "{text}");
}

#[test]
fn recovering_needs_no_free_space() {
    let (_, bytes) = written(&[(C, false), (S, true), (S, false), (S, false)]);
    for recovery in [Recovery::Checked, Recovery::ToHard, Recovery::ToSoft, Recovery::ToEnd] {
        let disk = install(&bytes);
        disk.limit_space(0);
        let database = super::open_with(&options(recovery), &disk).unwrap();
        if let Some(cut) = &database.recovered().cut {
            assert_eq!(cut.saved_as, None);
            assert!(database.recovered().findings[0].contains("not saved, for want of space"));
        }
        database.close().unwrap();
        assert!(inspect_in(&annals::Options::new(), &disk, NAME).unwrap().is_closed());
    }
}
