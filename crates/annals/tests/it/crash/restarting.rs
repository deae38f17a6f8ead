//! The journal continues in a new segment while things go wrong.

use std::ops::ControlFlow;
use std::time::Duration;

use annals::reports::{Older, Restarting};
use annals::{BackfillMode, ErrorKind};

use super::imaging::Imaging;
use super::world::{Stop, World};

impl World {
    /// Restarts the journal: all that was committed is durable then.
    pub(super) fn restart(&mut self, older: Older) -> Result<(), Stop> {
        if !self.catch_up()? {
            return Ok(());
        }
        let restarted = self.database().restart(older, Duration::ZERO);
        if restarted.is_ok() {
            self.see_all()?;
            self.history.harden();
        }
        self.shrug("a restart", restarted.map(drop))
    }

    /// Gets ready for another file at the path: among several processes it takes in what others did. Tells
    /// whether that went well.
    fn catch_up(&mut self) -> Result<bool, Stop> {
        self.history.hard = 0;
        if self.sharing.is_none() {
            return Ok(true);
        }
        let begun = self.database().begin().map(drop);
        if begun.is_err() {
            return self.shrug("beginning", begun).map(|()| false);
        }
        let txid = self.database().read().txid().0;
        self.history.settled(txid)?;
        Ok(true)
    }

    /// Brings the image forward, and restarts the journal after it: history goes if it may be forgotten.
    pub(super) fn restart_behind(&mut self, forget_history: bool) -> Result<(), Stop> {
        if !self.catch_up()? {
            return Ok(());
        }
        // Who reads an older root is waited for.
        self.imaging.iter_mut().for_each(Imaging::let_go);
        let how = Restarting { timeout: Duration::ZERO, forget_history };
        let mode = if forget_history { BackfillMode::Truncate } else { BackfillMode::Restart };
        let watch = &mut |_| ControlFlow::Continue(());
        let done = self.database().backfill_with(mode, how, watch);
        if let Ok(done) = &done {
            self.see_all()?;
            self.history.harden();
            self.advanced(done)?;
        }
        match done {
            // Others may read what is older, and continue with that.
            Err(error) if self.sharing.is_some() && error.kind() == ErrorKind::Busy => Ok(()),
            done => self.shrug("a restart behind a backfill", done.map(drop)),
        }
    }
}
