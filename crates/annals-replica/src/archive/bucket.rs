//! An object store, as far as archives use it: creating, reading, listing, removing.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::{Error, Result};
use annals_storage::{Clock as _, SystemClock};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};
use tokio::runtime::Runtime;
use url::Url;

use super::{folder, refusal};
use crate::redact::redact;

/// How long a request is tried again where the store can't be reached or fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same before the store has answered for the first time.
const FIRST_PATIENCE: Duration = Duration::from_secs(8);
/// The first pause before it is tried again; each further one is twice as long, up to 5 s.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many objects are fetched at a time.
const AT_A_TIME: usize = 4;
/// A larger object is fetched in parts of so many bytes.
const PART: u64 = 16 << 20;
const PART_STEP: usize = 16 << 20;

/// A place in an object store, or a folder.
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The folder, if it is one: there objects are created by us, since they must be flushed.
    folder: Option<PathBuf>,
    name: String,
    patience: Duration,
    /// True once the store has answered.
    is_there: AtomicBool,
    runtime: Runtime,
}

/// True if a failure may pass: a connection that breaks, a store that is overloaded. That a request is refused doesn't, and is of
/// the same kind, with the status in its text only.
fn may_pass(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::Generic { .. })
        && !error.to_string().contains("status code: 4")
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket {}", self.name)
    }
}

/// Whether an object was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    Yes,
    /// There is one of this name: of somebody else, or from a request of ours whose answer was lost.
    Exists,
}

/// An object that is read, or a part of it.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'n> {
    pub(super) name: &'n str,
    /// Which bytes; `None`: all.
    pub(super) range: Option<Range<u64>>,
}

impl Bucket {
    /// Opens the place that a URL names: `file:///FOLDER`, `s3://BUCKET/PATH`, `gs://BUCKET/PATH` or
    /// `az://CONTAINER/PATH`. How to reach an object store, and who asks, is in the usual variables of the environment
    /// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, `GOOGLE_..`, `AZURE_..`). Nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid`: it is no such URL, or the settings aren't complete.
    pub fn open(url: &str) -> Result<Self> {
        let wrong = |why: String| {
            Error::invalid(redact(&format!(
                "{url}: isn't the URL of an archive: {why}; write file:///FOLDER or s3://BUCKET/PATH"
            )))
        };
        let parsed = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let has_login = |url: &Url| !url.username().is_empty() || url.password().is_some();
        if has_login(&parsed) {
            let what = "it has a key or a password: those are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the \
                        like of another store";
            return Err(wrong(what.to_owned()));
        }
        // Another provider may have been chosen by the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let variables = std::env::vars().map(|(name, value)| (name.to_lowercase(), value));
        let known = ["aws_", "google_", "azure_"];
        let variables = variables.filter(|(name, _)| known.iter().any(|it| name.starts_with(it)));
        let variables: Vec<_> = variables.collect();
        let is_wrong = |(_, value): &&(String, String)| {
            value.contains("://") && Url::parse(value).is_ok_and(|url| has_login(&url))
        };
        if let Some((name, _)) = variables.iter().find(is_wrong) {
            return Err(wrong(format!("{} has a user or a password in it", name.to_uppercase())));
        }
        let opened = object_store::parse_url_opts(&parsed, variables);
        let (store, prefix) = opened.map_err(|error| wrong(error.to_string()))?;
        let folder = match parsed.scheme() {
            "file" => {
                Some(parsed.to_file_path().map_err(|()| wrong("it has no folder".to_owned()))?)
            }
            _ => None,
        };
        Self::of(store.into(), prefix, folder, url.trim_end_matches('/').to_owned())
    }

    /// Uses an object store that the program has opened itself.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub fn with(store: Arc<dyn ObjectStore>, name: &str) -> Result<Self> {
        Self::of(store, Path::default(), None, name.to_owned())
    }

    fn of(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        folder: Option<PathBuf>,
        name: String,
    ) -> Result<Self> {
        // Several threads read from it at the same time.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("annals-bucket")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::io("cannot start threads", error))?;
        let (patience, is_there) = (PATIENCE, AtomicBool::new(false));
        Ok(Self { store, prefix, folder, name, patience, is_there, runtime })
    }

    /// Sets how long a request is tried again, instead of a minute.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns its URL.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, name: &str) -> Path {
        let parts = self.prefix.parts().map(|part| part.as_ref().to_owned());
        Path::from_iter(parts.chain(name.split('/').map(str::to_owned)))
    }

    fn failed(&self, what: &str, error: &object_store::Error) -> Error {
        let (kind, why) = refusal::explain(error);
        Error::new(kind, format!("{}: {what}: {why}", self.name))
    }

    /// Does something until it works, or fails in a way that waiting doesn't mend.
    fn again<T>(
        &self,
        mut work: impl FnMut() -> std::result::Result<T, object_store::Error>,
    ) -> std::result::Result<T, object_store::Error> {
        let (begun, mut pause) = (SystemClock.elapsed(), PAUSE.min(self.patience));
        loop {
            let done = work();
            if !done.as_ref().is_err_and(may_pass) {
                self.is_there.store(true, Ordering::Relaxed);
                return done;
            }
            // An address that is wrong isn't waited for as a store that has answered before.
            let patience = match self.is_there.load(Ordering::Relaxed) {
                true => self.patience,
                false => self.patience.min(FIRST_PATIENCE),
            };
            if SystemClock.elapsed().saturating_sub(begun) >= patience {
                return done;
            }
            SystemClock.pause(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Creates an object, unless there is one of that name.
    pub(super) fn create(&self, name: &str, bytes: &Bytes) -> Result<Created> {
        if let Some(root) = &self.folder {
            let made = folder::create(root, name, bytes);
            let made = made.map_err(|error| {
                Error::io(format!("{}: cannot create {name}", self.name), error)
            })?;
            return Ok(if made { Created::Yes } else { Created::Exists });
        }
        let path = self.path(name);
        let put = || {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let payload = PutPayload::from(bytes.clone());
            self.runtime.block_on(self.store.put_opts(&path, payload, options))
        };
        match self.again(put) {
            Ok(_) => Ok(Created::Yes),
            // Stores answer either if there is one. (They may also do so if it is being removed: then it isn't there.)
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(Created::Exists),
            Err(error) => Err(self.failed(&format!("cannot create {name}"), &error)),
        }
    }

    /// Creates an object whose name says what is in it: one that is there must be the same.
    pub(super) fn create_same(&self, name: &str, bytes: &Bytes) -> Result<()> {
        loop {
            if self.create(name, bytes)? == Created::Yes {
                return Ok(());
            }
            match self.get(name)? {
                // It was being removed.
                None => SystemClock.pause(PAUSE),
                Some(there) if there == *bytes => return Ok(()),
                Some(_) => {
                    let message = format!(
                        "{}: {name} holds something else than the journal: it is damaged, or of another database; \
                         archive to an empty place",
                        self.name
                    );
                    return Err(Error::corrupt(message));
                }
            }
        }
    }

    /// Returns the bytes of an object; `None` if there is none.
    pub(super) fn get(&self, name: &str) -> Result<Option<Bytes>> {
        let mut found = self.get_all(&[name])?;
        Ok(found.pop().flatten())
    }

    /// Returns when an object was created by the clock of the store, in microseconds since 1970; `None` if there is none.
    pub(super) fn time_of(&self, name: &str) -> Result<Option<i64>> {
        let path = self.path(name);
        match self.again(|| self.runtime.block_on(self.store.head(&path))) {
            Ok(found) => Ok(Some(found.last_modified.timestamp_micros())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&format!("cannot look at {name}"), &error)),
        }
    }

    /// Returns the bytes of several objects, which are fetched at the same time. Those that fail are fetched again.
    pub(super) fn get_all(&self, names: &[&str]) -> Result<Vec<Option<Bytes>>> {
        let whole: Vec<_> = names.iter().map(|name| Wanted { name, range: None }).collect();
        self.get_parts(&whole)
    }

    /// Returns the bytes of an object, which should be so many; `None` if there is none. The parts of a large one are fetched
    /// at the same time.
    pub(super) fn get_large(&self, name: &str, len: u64) -> Result<Option<Bytes>> {
        if len <= PART {
            return self.get(name);
        }
        let parts = (0..len).step_by(PART_STEP);
        let wanted: Vec<_> =
            parts.map(|at| Wanted { name, range: Some(at..len.min(at + PART)) }).collect();
        // One that is too short doesn't have all parts: then what it has is read.
        let Ok(parts) = self.get_parts(&wanted) else { return self.get(name) };
        let mut whole = BytesMut::with_capacity(usize::try_from(len).unwrap_or(0));
        for part in parts {
            let Some(part) = part else { return Ok(None) };
            whole.extend_from_slice(&part);
        }
        Ok(Some(whole.freeze()))
    }

    /// Does what [`get_all`](Self::get_all) does, for parts of objects.
    pub(super) fn get_parts(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<Bytes>>> {
        let mut found: Vec<Option<Bytes>> = vec![None; wanted.len()];
        let mut missing: Vec<(usize, &Wanted<'_>)> = wanted.iter().enumerate().collect();
        let one = |(place, wanted)| async move { (place, wanted, self.get_part(wanted).await) };
        let get = || {
            let wanted = std::mem::take(&mut missing);
            let each = futures_util::stream::iter(wanted).map(one).buffered(AT_A_TIME);
            let mut failure = Ok(());
            for (place, wanted, got) in self.runtime.block_on(each.collect::<Vec<_>>()) {
                match (got, found.get_mut(place)) {
                    (Ok(bytes), Some(to)) => *to = bytes,
                    (got, _) => {
                        missing.push((place, wanted));
                        failure = got.map(drop);
                    }
                }
            }
            failure
        };
        self.again(get).map_err(|error| self.failed("cannot read", &error))?;
        Ok(found)
    }

    async fn get_part(&self, wanted: &Wanted<'_>) -> object_store::Result<Option<Bytes>> {
        let range = wanted.range.clone().map(GetRange::Bounded);
        let options = GetOptions { range, ..GetOptions::default() };
        match self.store.get_opts(&self.path(wanted.name), options).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates objects whose names nobody else uses, several at the same time.
    pub(super) fn create_own(&self, objects: &[(String, Bytes)]) -> Result<()> {
        if self.folder.is_some() {
            return objects.iter().try_for_each(|(name, bytes)| self.create_same(name, bytes));
        }
        let mut missing: Vec<_> = objects.iter().collect();
        let one = |object: &'_ (String, Bytes)| {
            let (path, payload) = (self.path(&object.0), PutPayload::from(object.1.clone()));
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            async move { self.store.put_opts(&path, payload, options).await }
        };
        let put = || {
            let wanted = std::mem::take(&mut missing);
            let each = wanted.iter().map(|object| one(object));
            let each = futures_util::stream::iter(each).buffered(AT_A_TIME);
            let mut failure = Ok(());
            for (object, put) in wanted.iter().zip(self.runtime.block_on(each.collect::<Vec<_>>()))
            {
                let is_there = matches!(
                    put,
                    Ok(_)
                        | Err(object_store::Error::AlreadyExists { .. }
                            | object_store::Error::Precondition { .. })
                );
                if !is_there {
                    missing.push(object);
                    failure = put.map(drop);
                }
            }
            failure
        };
        self.again(put).map_err(|error| self.failed("cannot create", &error))
    }

    /// Returns the names of the objects in a folder that are after one, with their lengths, in order. They may come
    /// late: nothing relies on what is missing.
    pub(super) fn list(&self, folder: &str, after: &str) -> Result<Vec<(String, u64)>> {
        let (prefix, offset) = (self.path(folder), self.path(&format!("{folder}/{after}")));
        let list = || {
            let found = self.store.list_with_offset(Some(&prefix), &offset);
            self.runtime.block_on(found.try_collect::<Vec<_>>())
        };
        let found = self.again(list).map_err(|error| self.failed("cannot list", &error))?;
        let names = found.into_iter().filter_map(|it| {
            let name = it.location.filename()?.to_owned();
            // What is being written.
            (!name.starts_with('.')).then_some((name, it.size))
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Removes objects; that one is missing is fine.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        let gone = || {
            let paths = futures_util::stream::iter([Ok(path.clone())]).boxed();
            self.runtime.block_on(self.store.delete_stream(paths).try_collect::<Vec<_>>())
        };
        match self.again(gone) {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&format!("cannot remove {name}"), &error)),
        }
    }

    /// Creates the same object from several tasks at once; returns how many were told that they did, and whether the
    /// object is that of one of them.
    pub(super) fn race(&self, name: &str, racers: u32) -> Result<(u32, bool)> {
        let path = self.path(name);
        let text = |racer: u32| format!("racer {racer}");
        let put = |racer: u32| {
            let path = path.clone();
            async move {
                let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
                let put = self.store.put_opts(&path, text(racer).into(), options).await;
                match put {
                    Ok(_) => Ok(Some(racer)),
                    Err(
                        object_store::Error::AlreadyExists { .. }
                        | object_store::Error::Precondition { .. },
                    ) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        };
        let all = futures_util::future::try_join_all((0..racers).map(put));
        let won =
            self.runtime.block_on(all).map_err(|error| self.failed("cannot create", &error))?;
        let won: Vec<_> = won.into_iter().flatten().collect();
        let there = self.get(name)?.unwrap_or_default();
        let is_of_winner = won.first().is_some_and(|racer| there == text(*racer).into_bytes());
        Ok((u32::try_from(won.len()).unwrap_or(u32::MAX), is_of_winner))
    }
}
