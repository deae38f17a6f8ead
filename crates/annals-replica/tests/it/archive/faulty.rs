//! An object store that fails as stores do: before or after the effect, with late lists, and, if asked for, with a lie
//! about conditional puts.

use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// This request, counted from 1, and all later ones fail: the process was killed, or the network is gone.
    pub(super) cut_at: Option<u64>,
    /// The one that is cut has its effect, but its answer is lost.
    pub(super) has_effect: bool,
    /// Every third request fails once, with or without its effect in turns.
    pub(super) is_stormy: bool,
    /// The newest objects aren't listed.
    pub(super) lists_late: bool,
    /// Creating an object replaces one that is there.
    pub(super) lies: bool,
    /// How far its clock is behind.
    pub(super) behind: Duration,
}

#[derive(Debug)]
pub(super) struct Faulty {
    store: std::sync::Arc<InMemory>,
    faults: Mutex<Faults>,
    requests: AtomicU64,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

/// What happens to a request.
enum Fate {
    Works,
    FailsBefore,
    FailsAfter,
}

fn failure() -> object_store::Error {
    object_store::Error::Generic { store: "faulty", source: "503 Slow Down".into() }
}

impl Faulty {
    pub(super) fn new(store: &std::sync::Arc<InMemory>, faults: Faults) -> Self {
        let (store, faults) = (std::sync::Arc::clone(store), Mutex::new(faults));
        Self { store, faults, requests: AtomicU64::new(0) }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn faults(&self) -> Faults {
        *self.faults.lock().unwrap()
    }

    fn next(&self) -> Fate {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let Faults { cut_at, has_effect, is_stormy, .. } = self.faults();
        match cut_at {
            Some(at) if number == at && has_effect => return Fate::FailsAfter,
            Some(at) if number >= at => return Fate::FailsBefore,
            _ => {}
        }
        match number % 6 {
            2 if is_stormy => Fate::FailsBefore,
            5 if is_stormy => Fate::FailsAfter,
            _ => Fate::Works,
        }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let options = match self.faults().lies {
            true => PutOptions { mode: PutMode::Overwrite, ..options },
            false => options,
        };
        match self.next() {
            Fate::FailsBefore => Err(failure()),
            Fate::Works => self.store.put_opts(at, payload, options).await,
            Fate::FailsAfter => {
                let _ = self.store.put_opts(at, payload, options).await;
                Err(failure())
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        match self.next() {
            Fate::Works => {
                let mut found = self.store.get_opts(at, options).await?;
                found.meta.last_modified -= self.faults().behind;
                Ok(found)
            }
            _ => Err(failure()),
        }
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.store.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.next() {
            Fate::Works => self.store.delete_stream(locations),
            _ => futures_util::stream::iter([Err(failure())]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.next() {
            Fate::Works if self.faults().lists_late => {
                // What is there was listed long ago, but for the last few.
                let all = self.store.list(prefix).collect::<Vec<_>>();
                let all = futures_util::FutureExt::now_or_never(all).unwrap_or_default();
                let mut all: Vec<_> = all.into_iter().map(|it| it.unwrap()).collect();
                all.sort_by(|a, b| a.location.cmp(&b.location));
                all.truncate(all.len().saturating_sub(3));
                futures_util::stream::iter(all.into_iter().map(Ok)).boxed()
            }
            Fate::Works => self.store.list(prefix),
            _ => futures_util::stream::iter([Err(failure())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
