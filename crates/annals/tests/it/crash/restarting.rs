//! The journal goes on in a new segment while things go wrong.

use std::ops::ControlFlow;
use std::time::Duration;

use annals::{BackfillMode, Older, Restarting};

use super::imaging::Imaging;
use super::world::{Stop, World};

impl World {
    /// Restarts the journal: all that was committed is durable then.
    pub(super) fn restart(&mut self, older: Older) -> Result<(), Stop> {
        // The path may lead to another file from now on.
        self.history.hard = 0;
        if self.sharing.is_some() {
            let begun = self.database().begin().map(drop);
            if begun.is_err() {
                return self.shrug("beginning", begun);
            }
            let txid = self.database().read().txid();
            self.history.settled(txid)?;
        }
        let restarted = self.database().restart(older, Duration::ZERO);
        if restarted.is_ok() {
            self.see_all()?;
            self.history.harden();
        }
        self.shrug("a restart", restarted.map(drop))
    }

    /// Brings the image forward, and restarts the journal behind it: history goes if it may be forgotten.
    pub(super) fn restart_behind(&mut self, forget_history: bool) -> Result<(), Stop> {
        self.history.hard = 0;
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
        self.shrug("a restart behind a backfill", done.map(drop))
    }
}
