//! The transactions that a client will ask for next, which are read and verified while those before are sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::Cursor;
use annals_replica::Local;
use annals_replica::frames::Batch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::buffers::{Buffers, Lent};

/// So long they are kept: later an erasure may have replaced the files that they are in.
const FRESH: Duration = Duration::from_secs(1);

/// What one client asks for next. If several fetch a whole journal at the same time, it is that of the last.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Arc<Mutex<Option<Next>>>);

#[derive(Debug)]
struct Next {
    after: Cursor,
    begun: Instant,
    frames: JoinHandle<Option<Frames>>,
}

/// Frames, and the memory that they are in, unless they are to be read from their files.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) batch: Batch,
    pub(crate) memory: Option<Lent>,
}

impl Frames {
    /// Reads what follows a cursor.
    pub(crate) fn read(
        local: &Local,
        after: Option<Cursor>,
        buffers: &Arc<Buffers>,
    ) -> annals::Result<Self> {
        let mut memory = None;
        let mut batch = local.batch_into(after, |count| {
            memory = buffers.lend(count);
            memory.as_mut().map(|lent| std::mem::take(&mut lent.bytes))
        })?;
        let memory = memory.zip(batch.bytes.take());
        let memory = memory.map(|(lent, bytes)| lent.with(bytes));
        Ok(Self { batch, memory })
    }
}

fn lock(next: &Mutex<Option<Next>>) -> MutexGuard<'_, Option<Next>> {
    next.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ahead {
    /// Begins to read what follows a cursor.
    pub(crate) fn begin(&self, local: Arc<Local>, after: Cursor, buffers: Arc<Buffers>) {
        // An error is that of the request for it.
        let read = move || Frames::read(&local, Some(after), &buffers).ok();
        let (frames, begun) = (tokio::task::spawn_blocking(read), Instant::now());
        *lock(&self.0) = Some(Next { after, begun, frames });
        let next = Arc::clone(&self.0);
        tokio::spawn(async move {
            sleep(FRESH).await;
            lock(&next).take_if(|next| next.begun == begun);
        });
    }

    /// Returns what follows a cursor, if that was begun just now and there is something.
    pub(crate) async fn take(&self, after: Option<Cursor>) -> Option<Frames> {
        let next = lock(&self.0).take_if(|next| Some(next.after) == after);
        next?.frames.await.ok().flatten().filter(|frames| !frames.batch.is_empty())
    }
}
