//! For async programs on tokio: writing, and subscriptions as streams.

use std::fmt;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::runtime::Handle;

use super::{Abort, AnyChange, Changed, Database, Subscription, Transaction, TypedSchema};
use crate::{Error, ErrorKind, Result};

impl<S: TypedSchema> Database<S> {
    /// Does what [`write`](Self::write) does, in a thread of tokio's for blocking work. `change` runs there, from its
    /// beginning to the commit, so it can't `await`.
    ///
    /// The transaction begins when the future is first polled. **Dropping the future then doesn't stop it**: `change`
    /// runs to its end, and is committed or rolled back as if nobody had stopped waiting; only its result is lost.
    /// So a request that was cancelled may have been committed.
    ///
    /// Each call takes a thread of the pool until it has committed, also while it waits for the writer before it.
    /// Calls that commit at the same time share flushes.
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// let db = tutorial::Database::in_memory()?;
    /// let name = "Lille".to_owned();
    /// let lille = db.write_async(move |tx| Ok(tx.insert(city::New { name: &name })?)).await?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`write`](Self::write). There is no runtime of tokio, or it is being shut down: then nothing was
    /// committed.
    ///
    /// # Panics
    /// If `change` panics, with its panic; it was rolled back.
    pub async fn write_async<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Transaction<'_, S>) -> Result<T, Abort> + Send + 'static,
    ) -> Result<T> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(Error::invalid("`write_async` must be awaited in a runtime of tokio"));
        };
        let db = self.clone();
        let written = runtime.spawn_blocking(move || db.write(change)).await;
        written.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => {
                let message = "the runtime was shut down before the transaction began";
                Err(Error::new(ErrorKind::Cancelled, message))
            }
        })
    }
}

/// New commits from some transaction on, as a stream: see
/// [`into_stream`](crate::Subscription::into_stream).
#[must_use = "a stream does nothing unless it is polled"]
pub struct SubscriptionStream<C> {
    stream: crate::SubscriptionStream,
    kind: PhantomData<fn() -> C>,
}

impl<C: AnyChange> Subscription<C> {
    /// Returns the same commits as a stream: see [`into_stream`](crate::Subscription::into_stream).
    ///
    /// ```
    /// annals::schema!("tutorial.schema");
    /// use futures_util::StreamExt as _;
    /// use tutorial::city;
    ///
    /// # fn main() -> annals::Result<()> {
    /// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let db = tutorial::Database::in_memory()?;
    /// let mut feed = db.subscribe().into_stream();
    /// db.write_async(|tx| Ok(tx.insert(city::New { name: "Lille" })?)).await?;
    /// assert_eq!(feed.next().await.unwrap()?.changes.len(), 1);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn into_stream(self) -> SubscriptionStream<C> {
        SubscriptionStream { stream: self.into_dynamic().into_stream(), kind: PhantomData }
    }
}

impl<C: AnyChange> Stream for SubscriptionStream<C> {
    type Item = Result<Changed<C>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = Pin::new(&mut self.stream).poll_next(cx);
        polled.map(|next| next.map(|changed| changed.and_then(Changed::new)))
    }
}

impl<C> fmt::Debug for SubscriptionStream<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}
