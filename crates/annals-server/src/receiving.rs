//! The body of a request as every route gets it: it ends with an error at its limits of size and time.

use std::fmt;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::answer::Refusal;

/// So many bytes, or the rest, must be received within the time that a client may be silent: else one could send a byte now and
/// then for ever.
pub(crate) const LEAST: usize = 16 << 10;

/// A body that is received: it has so many bytes at most, and [`LEAST`] of them, or its end, come within the time of silence.
pub(crate) struct Receiving {
    body: Body,
    most: u64,
    left: u64,
    silence: Duration,
    /// Begins with the first byte that is waited for.
    timer: Option<Pin<Box<Sleep>>>,
    since: usize,
}

/// Why a body wasn't received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    TooLarge(u64),
    Slow(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(most) => write!(
                f,
                "the body has more than {most} bytes, the most that this server takes there (--max-push, --memory)"
            ),
            Self::Slow(silence) => {
                write!(f, "less than {LEAST} bytes of the body came within {silence:?}")
            }
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (status, name) = match failure {
            Failure::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Failure::Slow(_) => (StatusCode::REQUEST_TIMEOUT, "timeout"),
        };
        Self::new(status, name, failure.to_string())
    }
}

impl Receiving {
    pub(crate) const fn new(body: Body, most: u64, silence: Duration) -> Self {
        Self { body, most, left: most, silence, timer: None, since: 0 }
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        let count = bytes.len() as u64;
        self.left = self.left.checked_sub(count).ok_or(Failure::TooLarge(self.most))?;
        self.since += bytes.len();
        if self.since >= LEAST {
            self.since = 0;
            if let Some(timer) = &mut self.timer {
                timer.as_mut().reset(Instant::now() + self.silence);
            }
        }
        Ok(())
    }
}

impl HttpBody for Receiving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let silence = this.silence;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            let bytes = frame.as_ref().and_then(|it| it.as_ref().ok()?.data_ref());
            if let Some(Err(failure)) = bytes.cloned().map(|bytes| this.take(&bytes)) {
                return Poll::Ready(Some(Err(axum::Error::new(failure))));
            }
            return Poll::Ready(frame);
        }
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(silence)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(axum::Error::new(Failure::Slow(silence)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
