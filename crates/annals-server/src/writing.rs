//! Requests that write: so many at a time, and none is answered as done before the backup has it, if there is one.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::time::timeout;

use crate::answer::{Answer, Refusal};
use crate::blocking;
use crate::means::busy;
use crate::rights::Allowed;
use crate::shared::{Limits, Served};

impl Served {
    /// Fails if the backup is missing for so long that a transaction would wait in vain.
    pub(crate) fn check_backup(&self, limits: Limits) -> Answer<()> {
        let problem = self.backup.as_ref().and_then(|backup| backup.problem());
        match problem {
            Some((_, since)) if since >= limits.backup => Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "backup",
                "the backup can't take transactions, so this server takes none; nothing was changed: try again later",
            )),
            _ => Ok(()),
        }
    }
}

impl Allowed {
    /// Runs something that commits, on a thread that may block. It goes on even if nobody waits for it any more.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let limits = self.shared().limits;
        let permit = timeout(limits.silence, Arc::clone(&self.writers).acquire_owned()).await;
        let permit = permit.map_err(|_| busy("too many requests write; nothing was changed"))?;
        // It may have ended while the body came, or since.
        self.right().check()?;
        let work = move || {
            let _permit = permit;
            work()
        };
        if self.backup.is_none() {
            return blocking::run_here(work).await;
        }
        let writing = blocking::run(work);
        let done = timeout(limits.backup, writing).await;
        done.unwrap_or_else(|_| {
            Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unknown",
                "the backup hasn't confirmed the transaction in time: whether it becomes history is not known; ask for \
                 its chain later, or send it again with the same frames or the same Idempotency-Key",
            ))
        })
    }
}
