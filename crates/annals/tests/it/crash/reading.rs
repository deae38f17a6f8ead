//! Reads that fail or give a wrong bit once: while opening, and while a program runs.

use annals::{Database, ErrorKind};
use annals_simulated::{ReadFault, SimulatedDisk};

use super::explore::{Explorer, Make, run};
use super::history::{Checked, History};
use super::judge;
use super::world::{End, Errors, World};

const FAULTS: [ReadFault; 2] = [ReadFault::Io, ReadFault::BitFlip];

impl Explorer {
    /// Lets each read of a workload go wrong; the program continues. In the end all that was
    /// acknowledged is there, and the disk is as it is after any other run.
    pub(super) fn reads(&self, workload: &str) -> Checked {
        let (world, end) = run(workload, Errors::Fatal, |_| ())?;
        assert_eq!(end, End::Finished, "nothing went wrong");
        for read in 0..world.disk.reads() {
            for fault in FAULTS {
                let place = format!("{workload}/read@{read}-{fault:?}");
                if !self.is_wanted(&place) || !self.is_chosen(&place, self.effort.reads) {
                    continue;
                }
                let plan = |disk: &SimulatedDisk| disk.fail_read_at(read, fault);
                let (world, end) = run(workload, Errors::Misreads, plan)
                    .map_err(|text| format!("{place}: {text}"))?;
                assert_eq!(end, End::Finished, "{place}: the power is on");
                self.every_state(&place, &world.disk.crash_states(), &world.history, 1)?;
            }
        }
        Ok(())
    }

    /// Opens a state in a share of places, each time with another read that goes wrong: it opens as
    /// it should, or fails, changes nothing for the worse, and opens the next time.
    pub(super) fn reads_of_opening(
        &self,
        place: &str,
        make: Make<'_>,
        history: &History,
        at_least: usize,
    ) -> Checked {
        if !self.is_chosen(place, self.effort.reads) {
            return Ok(());
        }
        let reads = {
            let disk = make();
            let started = disk.reads();
            let world = World::new(disk.clone(), 1, history.clone(), Errors::Fatal);
            drop(world.try_open().map_err(|error| format!("{place}: {error:?}"))?);
            disk.reads() - started
        };
        for read in 0..reads {
            for fault in FAULTS {
                let place = format!("{place}/read@{read}-{fault:?}");
                if self.is_wanted(&place) {
                    self.count_one();
                    misread(make(), history, at_least, (read, fault))
                        .map_err(|text| format!("{place}: {text}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Opens a disk one of whose next reads goes wrong.
fn misread(
    disk: SimulatedDisk,
    history: &History,
    at_least: usize,
    (read, fault): (u64, ReadFault),
) -> Checked {
    let before = judge::before(&disk, history)?;
    disk.fail_read_at(disk.reads() + read, fault);
    let world = World::new(disk.clone(), 1, history.clone(), Errors::Fatal);
    match world.try_open() {
        Err(error) => {
            let kinds = [ErrorKind::Io, ErrorKind::Corrupt, ErrorKind::NotAJournal];
            if !kinds.contains(&error.kind()) {
                return Err(format!("an error of the wrong kind: {error:?}"));
            }
            disk.clear_plan();
            let again = world.try_open().map_err(|error| format!("lost for good: {error:?}"))?;
            shows(&disk, history, &again, at_least)
        }
        Ok(database) => {
            disk.clear_plan();
            judge::opened(&disk, &before, &database)
                .map_err(|text| format!("{text}\n{}", disk.transcript()))?;
            shows(&disk, history, &database, at_least)
        }
    }
}

fn shows(disk: &SimulatedDisk, history: &History, database: &Database, at_least: usize) -> Checked {
    history.clone().opened(disk, database, at_least)
}
