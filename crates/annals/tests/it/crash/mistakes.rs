//! Deliberate mistakes in commit, recovery and backfill: each must be found by the test of this module that
//! `docs/crash.md` names, which is thereby seen to fail.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use annals::mistakes::{Mistake, make};
use annals::storage::{Clock, SystemClock};

use super::explore::{Effort, Explorer};
use super::history::Checked;
use super::images::{apart, failed_flush, growth, older_root, postponed};
use super::is_full;
use crate::image::cut::refused;
use crate::image::damage::{flipped_each, read_over_damage};
use crate::image::drop_roots::{frames_dropped, none_published};
use crate::image::seen::{outlived, seen};
use crate::replica::crash::explore as pushed;
use crate::segments::forget::pinned;
use crate::segments::opening::border;

/// How one kind of test explores one workload.
type Test = (&'static str, &'static str, fn(&Explorer, &str) -> Checked);

const TESTS: [Test; 52] = [
    ("power_cut_after_commits_of_each_level", "levels", Explorer::power),
    ("power_cut_after_commits_of_each_level", "levels", Explorer::kill),
    ("power_cut_at_every_operation", "mixed", Explorer::power),
    ("process_killed_at_every_operation", "mixed", Explorer::kill),
    ("every_operation_fails_in_every_way", "mixed", Explorer::faults),
    ("every_read_goes_wrong", "mixed", Explorer::power),
    ("power_cut_while_commits_are_pending", "pipelined", Explorer::power),
    ("power_cut_while_commits_are_pending", "pipelined", Explorer::faults),
    ("power_cut_in_long_transactions", "streaming", Explorer::power),
    ("power_cut_in_long_transactions", "streaming", Explorer::kill),
    ("process_killed_while_others_have_the_file_open", "shared", Explorer::shared),
    ("process_killed_in_long_transactions_of_several", "sharedlong", Explorer::shared),
    ("power_cut_while_the_journal_restarts", "restarting", Explorer::power),
    ("power_cut_while_the_journal_restarts", "restarting", Explorer::kill),
    ("process_killed_while_several_restart_the_journal", "sharedrestart", Explorer::shared),
    ("another_history_of_the_same_journal_is_found_out", "levels", |_, _| border()),
    ("a_segment_that_is_read_stays", "levels", |_, _| pinned()),
    ("power_cut_while_the_image_advances", "imaged", Explorer::power),
    ("process_killed_while_the_image_advances", "imaged", Explorer::kill),
    ("operations_fail_while_the_image_advances", "imaged", Explorer::faults),
    ("a_flush_of_the_image_that_failed_is_never_relied_on", "once", |_, _| failed_flush()),
    ("the_root_before_a_long_backfill_is_kept_while_the_next_one_runs", "once", |_, _| {
        older_root()
    }),
    ("an_image_grows_no_longer_than_what_it_has_and_what_is_pinned", "once", |_, _| growth()),
    ("an_image_of_a_copy_that_went_on_by_itself_is_set_aside", "once", |_, _| panics(apart)),
    ("a_backfill_waits_for_the_transaction_that_began_before_the_last_one", "once", |_, _| {
        panics(postponed)
    }),
    ("what_was_spilled_and_seen_stays_for_whoever_has_seen_it", "once", |_, _| {
        panics(|| seen(true))
    }),
    ("what_was_spilled_stays_for_a_snapshot_that_outlives_its_database", "once", |_, _| {
        panics(|| outlived(true, 1 << 20))
    }),
    ("what_key_frames_reach_is_not_written_over", "once", |_, _| crate::past::frames::kept()),
    ("a_damaged_key_frame_costs_that_key_frame_and_nothing_else", "once", |_, _| {
        panics(frames_dropped)
    }),
    ("no_root_is_published_that_reaches_what_is_known_to_be_damaged", "once", |_, _| {
        panics(none_published)
    }),
    ("a_journal_that_was_cut_before_its_image_is_not_gone_on_with", "once", |_, _| panics(refused)),
    ("a_flipped_bit_gives_the_right_answer_or_page_lost_and_then_the_right_one", "once", |_, _| {
        panics(flipped_each)
    }),
    ("who_only_reads_goes_on_alone", "once", |_, _| panics(read_over_damage)),
    ("a_recovery_that_crashes_is_repeated_with_the_same_end", "once", |_, _| {
        panics(|| {
            crate::recovery::sweep::sweep(0..40);
        })
    }),
    ("a_copy_that_loses_the_first_of_three_foreign_frames_opens", "once", |_, _| {
        panics(crate::claims::lost_first_of_three)
    }),
    ("frames_that_are_planted_in_a_value_claim_nothing", "once", |_, _| {
        panics(crate::claims::planted_in_their_places)
    }),
    ("a_torn_commit_never_verifies_whatever_its_value", "once", |_, _| {
        panics(crate::claims::torn_where_it_collides)
    }),
    ("a_flipped_bit_of_the_head_costs_no_row", "once", |_, _| panics(crate::claims::head_flipped)),
    ("a_live_block_that_tells_of_more_flushed_frames_is_a_witness", "once", |_, _| {
        panics(crate::claims::live_ahead)
    }),
    ("a_wrong_stored_chain_is_repaired", "once", |_, _| panics(crate::claims::wrong_chain)),
    ("a_commit_that_does_not_apply_is_cut_only_on_request", "once", |_, _| {
        panics(crate::hostile::unapplied::cut_only_on_request)
    }),
    ("without_a_slot_nothing_is_certain", "once", |_, _| {
        panics(crate::hostile::damage::without_slots)
    }),
    ("absurd_frames_and_slots_are_no_more_than_damage", "once", |_, _| {
        panics(crate::hostile::crafted::absurd_frames)
    }),
    ("a_slot_of_another_history_is_damage_though_an_image_is_beyond_it", "once", |_, _| {
        panics(crate::foreign_frames::foreign_slot)
    }),
    ("frames_planted_in_their_places_are_not_salvaged", "once", |_, _| {
        panics(crate::foreign_frames::planted_for_salvage)
    }),
    ("zeros_ahead_never_land_on_commits_of_another_process", "once", |_, _| {
        panics(crate::shared::zeros_ahead)
    }),
    ("one_copy_of_one_slot_is_a_witness", "once", |_, _| panics(crate::claims::one_copy_is_enough)),
    ("a_two_phase_commit_is_known_to_be_durable", "once", |_, _| {
        panics(crate::claims::two_phase_is_known)
    }),
    ("a_flush_lies_between_the_two_slots", "once", |_, _| panics(crate::claims::slots_take_turns)),
    ("frames_of_a_part_that_is_rolled_back_are_zeroed", "once", |_, _| {
        panics(crate::savepoints::zeroed)
    }),
    ("either_slot_block_of_a_device_may_be_lost", "once", |_, _| panics(crate::device::lost_block)),
    ("a_power_cut_leaves_a_copy_that_is_a_beginning", "once", |_, _| panics(|| pushed(2))),
];

/// Says whether a test fails by a panic.
fn panics(test: fn()) -> Checked {
    catch_unwind(test).map_err(|_| "panicked".to_owned())
}

/// Makes no mistake again when it goes.
struct Made;

impl Drop for Made {
    fn drop(&mut self) {
        make(None);
    }
}

/// Returns what the tests of this name find, with less effort than they have by themselves.
fn find(mistake: Option<Mistake>, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    make(mistake);
    let _made = Made;
    TESTS.into_iter().filter(|(name, ..)| is_wanted(name)).find_map(|(name, kind, how)| {
        let (samples, again, killed) = match kind {
            "streaming" | "sharedlong" => ([6, 2, 0], [0, 0], 0),
            _ => ([8, 4, 0], [4, 0], 300),
        };
        let reads = if name == "every_read_goes_wrong" { 100 } else { 0 };
        let (places, faults) = if kind == "sharedlong" { (5, 20) } else { (1, 3) };
        let effort = Effort { few: [8, 16, 0], samples, again, killed, places, faults, reads };
        let workloads = match kind {
            "once" => 1,
            _ if mistake.is_some() => 12,
            _ if is_full() => 3,
            _ => 1,
        };
        // Each on its own: states that were tried with one mistake aren't tried with the next.
        // A check of a test build that panics has found it, too.
        (0..workloads).find_map(|seed| {
            let run = || how(&Explorer::new(effort), &format!("{kind}-{seed}"));
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            done.unwrap_or_else(|_| Err("panicked".to_owned())).err()
        })
    })
}

/// Returns the test that the document says finds a mistake.
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
    // Those that are named there, if any are.
    let only = std::env::var("ANNALS_TEST_MISTAKES").ok();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(mistake) = Mistake::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = format!("{mistake:?}");
            if only.as_ref().is_some_and(|only| only.split(',').all(|one| one != name)) {
                continue;
            }
            let started = SystemClock.elapsed();
            let test = documented(&document, *mistake);
            let found = find(Some(*mistake), |name| name == test);
            let took = (SystemClock.elapsed() - started).as_millis();
            let text = found.as_ref().and_then(|found| found.lines().next()).unwrap_or("nothing");
            println!("{mistake:?}: {test}, {took} ms: {text}");
            if found.is_none() {
                missed.lock().unwrap().push(*mistake);
            }
        }
    };
    // A mistake belongs to the thread that makes it.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found by the tests that docs/crash.md names: {missed:?}");
}

/// The sweeps find nothing with the effort that finds each mistake. What is tried once is a test of its own.
#[test]
fn without_a_mistake_nothing_is_found() {
    let is_sweep = |name: &str| TESTS.iter().any(|(own, kind, _)| *own == name && *kind != "once");
    assert_eq!(find(None, is_sweep), None);
}
