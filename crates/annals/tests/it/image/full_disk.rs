//! A backfill that the disk has no space for: its file goes, so that the space is there for others.

use std::sync::Arc;

use annals::BackfillMode;
use annals::reports::BackfillOutcome;
use annals::storage::Directory as _;
use annals_simulated::{Fault, SimulatedClock, SimulatedDisk};

use super::larger::{MUCH, define, options};

#[test]
fn the_file_of_a_first_image_that_fails_is_removed() {
    let disk = SimulatedDisk::new(1);
    let begun =
        options(MUCH).open_in(Arc::new(disk.clone()), "a", Arc::new(SimulatedClock::new(7)));
    begun.unwrap().write(define).unwrap();
    let mut failed = 0;
    for skip in 0..40 {
        let disk = disk.fork();
        let clock = Arc::new(SimulatedClock::new(8));
        let db = options(MUCH).open_in(Arc::new(disk.clone()), "a", clock).unwrap();
        disk.fail_at(disk.operations() + skip, Fault::NoSpace);
        let done = db.backfill(BackfillMode::Full);
        disk.clear_plan();
        let Err(error) = done else { continue };
        let names = disk.list().unwrap();
        let again = db.backfill(BackfillMode::Full);
        // After a failed flush nothing more is known of the file, and nothing is written until the next opening.
        let is_stopped = again.is_err();
        let is_left = names.iter().any(|name| name.contains(".new-"));
        assert!(is_stopped || !is_left, "{skip}: {error}: {names:?}");
        if !is_stopped {
            assert_eq!(again.unwrap().outcome, BackfillOutcome::Advanced, "{skip}: {error}");
            failed += 1;
        }
    }
    assert!(failed > 2, "only {failed} failed where they could be repeated");
}
