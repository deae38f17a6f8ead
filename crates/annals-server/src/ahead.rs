//! The transactions that a client will ask for next, which are read and verified while those before are sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals::Cursor;
use annals::internals::Batch;
use annals_replica::Local;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// So long they are of use: later an erasure may have replaced the files that they are in.
const FRESH: Duration = Duration::from_secs(1);

/// What one client asks for next. If several fetch a whole journal at the same time, it is that of the last.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<Option<Next>>);

#[derive(Debug)]
struct Next {
    after: Cursor,
    begun: Instant,
    batch: JoinHandle<Option<Batch>>,
}

impl Ahead {
    /// Begins to read what follows a cursor.
    pub(crate) fn begin(&self, local: Arc<Local>, after: Cursor) {
        // An error is that of the request for it.
        let batch = tokio::task::spawn_blocking(move || local.batch(Some(after)).ok());
        let next = Next { after, begun: Instant::now(), batch };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    }

    /// Returns what follows a cursor, if that was begun just now and there is something.
    pub(crate) async fn take(&self, after: Option<Cursor>) -> Option<Batch> {
        let next = {
            let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            next.take_if(|next| Some(next.after) == after)
        };
        let next = next.filter(|next| next.begun.elapsed() < FRESH)?;
        next.batch.await.ok().flatten().filter(|batch| !batch.is_empty())
    }
}
