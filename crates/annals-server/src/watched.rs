//! The body of an answer, which ends when the right to it does: a token that is revoked or expires ends what it has opened.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use serde_json::json;

use crate::answer::Refusal;
use crate::rights::Right;
use crate::seats::Using;

/// How the end of a right is said in the midst of an answer.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Server-sent events.
    Events,
    /// Lines of JSON.
    Lines,
    /// Anything else: it is cut off.
    Bytes,
}

impl Form {
    fn of(headers: &HeaderMap, body: &Body) -> Self {
        let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
        match kind {
            // What has a length can't have more.
            _ if body.size_hint().exact().is_some() => Self::Bytes,
            Some(b"text/event-stream") => Self::Events,
            Some(b"application/x-ndjson") => Self::Lines,
            _ => Self::Bytes,
        }
    }

    fn last(self, refusal: &Refusal) -> Option<Bytes> {
        let text = json!({ "error": refusal.error, "message": refusal.message });
        match self {
            Self::Events => Some(format!("event: ended\ndata: {text}\n\n").into()),
            Self::Lines => Some(format!("{text}\n").into()),
            Self::Bytes => None,
        }
    }
}

/// A body that ends with a right.
pub(crate) struct Watched {
    body: Body,
    form: Form,
    ended: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    is_over: bool,
    /// True between lines: in the midst of one nothing else can be said.
    is_whole: bool,
    /// The connection is in use as long as this is.
    _using: Option<Using>,
}

impl Watched {
    pub(crate) fn new(body: Body, headers: &HeaderMap, right: Right, using: Option<Using>) -> Self {
        let (form, ended) = (Form::of(headers, &body), Box::pin(right.ended()));
        Self { body, form, ended, is_over: false, is_whole: true, _using: using }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(refusal) = this.ended.as_mut().poll(context) {
            this.is_over = true;
            this.body = Body::empty();
            return Poll::Ready(Some(match this.form.last(&refusal) {
                Some(last) if this.is_whole => Ok(Frame::data(last)),
                _ => Err(axum::Error::new(std::io::Error::other(refusal.message))),
            }));
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            this.is_whole = frame.data_ref().is_none_or(|data| data.ends_with(b"\n"));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
