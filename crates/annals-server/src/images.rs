//! The roots of an image that lazy replicas read: each is pinned for a while after the last read of it, so that the
//! database doesn't use its space again. The database may release one before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals_replica::frames::ExposedFile;

/// The most roots that are pinned at a time; then the one that was read longest ago is released.
const MOST: usize = 16;

/// The pinned roots of one image.
#[derive(Debug, Default)]
pub(crate) struct Images(Mutex<Vec<Pinned>>);

#[derive(Debug)]
struct Pinned {
    file: Arc<ExposedFile>,
    /// When the last read of it began.
    read: Duration,
}

impl Images {
    fn pinned(&self) -> MutexGuard<'_, Vec<Pinned>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a pinned root, which is read now.
    pub(crate) fn get(&self, root: u64) -> Option<Arc<ExposedFile>> {
        let mut pinned = self.pinned();
        pinned.retain(|it| it.file.is_kept());
        let found = pinned.iter_mut().find(|it| it.file.number == root)?;
        found.read = SystemClock.elapsed();
        Some(Arc::clone(&found.file))
    }

    /// Pins a root, unless it is: returns it as it is read.
    pub(crate) fn pin(self: &Arc<Self>, file: ExposedFile, time: Duration) -> Arc<ExposedFile> {
        // A root of the same number may be of another file, which replaced this one.
        let known = self.get(file.number).filter(|known| known.tag == file.tag);
        if let Some(known) = known {
            return known;
        }
        let file = Arc::new(file);
        let mut pinned = self.pinned();
        let (now, is_first) = (SystemClock.elapsed(), pinned.is_empty());
        pinned.retain(|it| it.file.number != file.number);
        if pinned.len() >= MOST
            && let Some(oldest) =
                (0..pinned.len()).min_by_key(|&at| pinned.get(at).map(|it| it.read))
        {
            pinned.remove(oldest);
        }
        pinned.push(Pinned { file: Arc::clone(&file), read: now });
        drop(pinned);
        if is_first {
            tokio::spawn(release(Arc::clone(self), time));
        }
        file
    }

    /// Releases roots that weren't read for a while; returns when to look again, if any are left.
    fn release(&self, time: Duration) -> Option<Duration> {
        let now = SystemClock.elapsed();
        let mut pinned = self.pinned();
        pinned.retain(|it| now.saturating_sub(it.read) < time);
        pinned.iter().map(|it| (it.read + time).saturating_sub(now)).min()
    }
}

/// Releases roots when their time is over, as long as there are any.
async fn release(images: Arc<Images>, time: Duration) {
    let mut next = time;
    loop {
        tokio::time::sleep(next).await;
        match images.release(time) {
            Some(pause) => next = pause.max(Duration::from_millis(10)),
            None => return,
        }
    }
}
