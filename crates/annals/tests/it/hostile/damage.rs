//! Damage: bytes flipped, files cut short or made longer, frames moved about.

use annals::Level;
use annals_simulated::Rng;
use annals_tools::inspect_in;

use super::journals::{Journal, NAME, Tolerance, install, journals, judge, thorough, write};

/// What is still certain when one place of the file is damaged.
fn one_fault(journal: &Journal) -> Tolerance {
    Tolerance { least: journal.durable, silent: false }
}

/// Returns where the frames of a journal begin and end.
fn frames(journal: &Journal) -> Vec<std::ops::Range<usize>> {
    let mut start = 16384;
    let ends = journal.ends.iter().map(|&end| usize::try_from(end).unwrap());
    ends.map(|end| std::mem::replace(&mut start, end)..end).collect()
}

fn flip_all(journal: &Journal) {
    let mut opened = 0;
    let end = usize::try_from(*journal.ends.last().unwrap()).unwrap();
    for at in 0..journal.bytes.len() {
        // Where there are only zeros, in the head and after the end, a sample will do.
        let dull = journal.bytes[at] == 0 && (at < 16384 || at > end + 64);
        if dull && !thorough() && at % 61 != 0 {
            continue;
        }
        let bits: Vec<usize> = match (thorough(), dull) {
            (true, _) => (0..8).collect(),
            (_, true) => vec![at % 8],
            (_, false) => vec![at % 8, (at * 5 + 3) % 8],
        };
        for bit in bits {
            let mut bytes = journal.bytes.clone();
            bytes[at] ^= 1 << bit;
            opened += u64::from(judge(
                journal,
                &bytes,
                one_fault(journal),
                &format!("bit {bit} of byte {at} flipped"),
            ));
        }
    }
    assert!(opened > 0, "none opened: nothing was tested");
}

/// doltlite: bytes changed in the middle of the log, and the file opened with what was before them, as if it were whole.
/// <https://github.com/dolthub/doltlite/issues/1341>, <https://github.com/dolthub/doltlite/issues/1573>
#[test]
fn a_flipped_bit_gives_an_error_or_the_right_data() {
    let journals = journals();
    // Each journal in a thread of its own: it takes a few seconds.
    std::thread::scope(|scope| {
        for journal in &journals {
            scope.spawn(|| flip_all(journal));
        }
    });
}

#[test]
fn a_closed_journal_loses_nothing_without_an_error() {
    let closed = &journals()[0];
    assert_eq!(closed.durable, closed.states.len() - 1, "all was known to be durable");
    for frame in frames(closed) {
        let mut bytes = closed.bytes.clone();
        bytes[frame.start + 30] ^= 4;
        assert!(!judge(closed, &bytes, one_fault(closed), "a damaged frame"));
    }
}

#[test]
fn a_file_cut_short_anywhere_gives_an_error_or_a_prefix() {
    for journal in &journals() {
        let step = if thorough() { 1 } else { 3 };
        let last = usize::try_from(*journal.ends.last().unwrap()).unwrap();
        let dense = (16380..last + 10).chain((0..16380).step_by(53 * step));
        let zeros = (last..journal.bytes.len()).step_by(401 * step);
        let boundaries = [0, 1, 255, 256, 4096, 4608, 8192, 12288, 16383, 16384];
        for len in dense.chain(zeros).chain(boundaries) {
            let Some(bytes) = journal.bytes.get(..len) else { continue };
            // Where frames are cut off that alone tell how far the journal was durable, nothing
            // tells of them any more; but a slot does not forget.
            let slots = slot_commits(journal);
            let tolerance = Tolerance { least: slots, silent: len >= 16384 };
            let opened = judge(journal, bytes, tolerance, &format!("cut to {len} bytes"));
            assert!(len >= 16384 || !opened, "{}: opened with {len} bytes", journal.name);
        }
    }
}

/// Returns how many commits the slots know to be durable.
fn slot_commits(journal: &Journal) -> usize {
    let directory = install(&journal.bytes);
    let inspection = inspect_in(&annals::Options::new(), &*directory, NAME).unwrap();
    let txids = inspection.head.slots.iter().flatten().flatten().map(|slot| slot.point.txid);
    usize::try_from(txids.max().unwrap().0).unwrap()
}

#[test]
fn what_is_appended_changes_nothing() {
    let other = write("another", 77, &[Level::Checksummed; 6], None, true);
    for journal in &journals() {
        let mut rng = Rng::new(9);
        let mut garbage = vec![0; 5000];
        rng.fill(&mut garbage);
        let end = journal.bytes.len();
        let foreign = other.bytes.get(end..).unwrap_or_default().to_vec();
        for (what, more) in [
            ("zeros", vec![0; 100_000]),
            ("one byte", vec![1]),
            ("garbage", garbage),
            ("itself", journal.bytes.clone()),
            ("its frames", journal.bytes[16384..].to_vec()),
            ("frames of another journal", other.bytes[16384..].to_vec()),
            ("frames of another journal at their place", foreign),
        ] {
            let bytes = [journal.bytes.clone(), more].concat();
            let tolerance = Tolerance { least: journal.states.len() - 1, silent: false };
            judge(journal, &bytes, tolerance, &format!("{what} appended"));
        }
    }
}

#[test]
fn frames_out_of_place_are_not_believed() {
    for journal in &journals() {
        let frames = frames(journal);
        for (first, a) in frames.iter().enumerate() {
            for b in &frames[first + 1..] {
                let bytes = [
                    &journal.bytes[..a.start],
                    &journal.bytes[b.clone()],
                    &journal.bytes[a.end..b.start],
                    &journal.bytes[a.clone()],
                    &journal.bytes[b.end..],
                ]
                .concat();
                let tolerance = Tolerance { least: slot_commits(journal), silent: false };
                judge(journal, &bytes, tolerance, &format!("{a:?} and {b:?} swapped"));
            }
            let twice =
                [&journal.bytes[..a.end], &journal.bytes[a.clone()], &journal.bytes[a.end..]];
            let tolerance = Tolerance { least: slot_commits(journal), silent: false };
            judge(journal, &twice.concat(), tolerance, &format!("{a:?} twice"));
            let without = [&journal.bytes[..a.start], &journal.bytes[a.end..]].concat();
            let silent = a.end == usize::try_from(*journal.ends.last().unwrap()).unwrap();
            let tolerance = Tolerance { least: slot_commits(journal), silent };
            judge(journal, &without, tolerance, &format!("{a:?} removed"));
        }
    }
}

/// As doltlite's stories above, by whole blocks.
#[test]
fn blocks_overwritten_with_zeros_or_garbage_are_noticed() {
    for journal in &journals() {
        for at in (0..journal.bytes.len()).step_by(512) {
            let end = (at + 512).min(journal.bytes.len());
            let mut rng = Rng::new(at as u64);
            let mut bytes = journal.bytes.clone();
            bytes[at..end].fill(0);
            let tolerance = Tolerance { least: slot_commits(journal), silent: true };
            judge(journal, &bytes, tolerance, &format!("zeros from {at} to {end}"));
            rng.fill(&mut bytes[at..end]);
            let tolerance = Tolerance { least: slot_commits(journal), silent: false };
            judge(journal, &bytes, tolerance, &format!("garbage from {at} to {end}"));
        }
    }
}

#[test]
fn without_a_slot_nothing_is_certain() {
    without_slots();
}

pub(crate) fn without_slots() {
    for journal in &journals() {
        for cut in [journal.bytes.len(), usize::try_from(journal.ends[2]).unwrap()] {
            let mut bytes = journal.bytes[..cut].to_vec();
            for copy in [4096 + 512, 4096 + 1024, 8192 + 512, 8192 + 1024] {
                bytes[copy + 8] ^= 1;
            }
            let tolerance = Tolerance { least: journal.states.len() - 1, silent: false };
            let what = format!("both slots damaged, cut to {cut}");
            assert!(!judge(journal, &bytes, tolerance, &what), "{what}: opened");
        }
    }
}

#[test]
fn frames_elsewhere_tell_nothing_of_what_was_durable() {
    let long = write("long", 79, &[Level::Checksummed; 6], None, true);
    let short = write("short", 80, &[Level::Checksummed; 1], None, true);
    for shift in [0, 8, 72] {
        // At their own place they look like lost frames of this one, and opening may refuse.
        let more = [vec![0; shift], long.bytes[16384..].to_vec()].concat();
        let bytes = [short.bytes.clone(), more].concat();
        let tolerance = Tolerance { least: 1, silent: false };
        assert!(judge(&short, &bytes, tolerance, "longer frames of another"), "shift {shift}");
    }
}

#[test]
fn parts_of_two_journals_do_not_make_one() {
    let other = write("another", 78, &[Level::Checksummed; 6], None, true);
    for journal in &journals() {
        // A block of the head that belongs to another journal, checksums and all.
        for (what, range) in [
            ("header", 0..4096),
            ("slot 0", 4096..8192),
            ("slot 1", 8192..12288),
            ("live", 12288..16384),
        ] {
            let mut bytes = journal.bytes.clone();
            bytes[range.clone()].copy_from_slice(&other.bytes[range]);
            let tolerance = Tolerance { least: journal.durable, silent: false };
            judge(journal, &bytes, tolerance, &format!("{what} of another journal"));
            if what == "header" {
                let error = inspect_in(&annals::Options::new(), &*install(&bytes), NAME)
                    .map(|_| ())
                    .unwrap_err();
                assert!(error.to_string().contains("the copies of its header differ"), "{error}");
            }
        }
        // The head of one and the frames of the other.
        let mixed = [&journal.bytes[..16384], &other.bytes[16384..]].concat();
        let tolerance = Tolerance { least: 0, silent: false };
        judge(journal, &mixed, tolerance, "the frames of another journal");
    }
}
