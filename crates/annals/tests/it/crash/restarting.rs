//! The journal goes on in a new segment while things go wrong.

use std::time::Duration;

use annals::Older;

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
}
