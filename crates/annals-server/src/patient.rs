//! A connection that isn't waited for without end: what its client should send or receive must move.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::receiving::LEAST;
use crate::slow::Slow;

/// By so many bytes it is known which version of HTTP a client speaks; from then on hyper has timeouts.
const BEGINNING: usize = 24;

/// A stream with deadlines for the first bytes that are read, and for bytes that are written.
pub(crate) struct Patient<S> {
    stream: S,
    silence: Duration,
    /// Until the beginning has come.
    beginning: Option<Pin<Box<Sleep>>>,
    read: usize,
    /// While the client doesn't take what is written, and how much it took since.
    writing: Option<Pin<Box<Sleep>>>,
    taken: usize,
    slow: Arc<Slow>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, silence: Duration, slow: Arc<Slow>) -> Self {
        let beginning = Some(Box::pin(sleep(silence)));
        Self { stream, silence, beginning, read: 0, writing: None, taken: 0, slow }
    }

    /// Notes how a write of `wanted` bytes went.
    fn written(
        &mut self,
        wanted: usize,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.beginning = None;
        match written {
            Poll::Ready(Ok(written)) => {
                self.taken += written;
                if written == wanted || self.taken >= LEAST {
                    (self.writing, self.taken) = (None, 0);
                }
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let silence = self.silence;
                let timer = self.writing.get_or_insert_with(|| Box::pin(sleep(silence)));
                ready!(timer.as_mut().poll(context));
                self.slow.connection();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(timer) = &mut self.beginning {
            if read.is_pending() {
                ready!(timer.as_mut().poll(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.read += buffer.filled().len() - before;
            if self.read >= BEGINNING {
                self.beginning = None;
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(bytes.len(), written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = bytes.iter().map(|bytes| bytes.len()).sum();
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(wanted, written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
