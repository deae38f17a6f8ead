//! Answers that are made part by part, as the reader takes them: a slow one holds no thread, and the memory of one part.

use std::io;

use axum::body::Body;
use bytes::Bytes;

use crate::answer::Answer;
use crate::body::{self, Pushing};
use crate::means::{Held, Kind};
use crate::rights::Allowed;
use crate::work::Work;

/// What makes an answer part by part.
pub(crate) trait Parts: Send + 'static {
    /// The most memory that making a part takes, beside what is held from the beginning.
    const MOST: u64 = 0;

    /// Makes the next part; `None` at the end.
    fn next(&mut self, work: &mut Work) -> Answer<Option<Vec<u8>>>;
}

/// Returns a body that begins with some bytes, or else with the first part: what is wrong with that is an error of the
/// answer. Each further part is made in a place for work; `held` is held until the last one was sent, or the client has left.
pub(crate) async fn send(
    allowed: &Allowed,
    first: Vec<u8>,
    parts: impl Parts,
    held: Held,
) -> Answer<Body> {
    let (pushing, body) = body::pushed(allowed).await?;
    let made = match first.is_empty() {
        true => next(allowed, parts, held).await?,
        false => Made { rest: parts, held, part: Some(Bytes::from(first)) },
    };
    tokio::spawn(push(allowed.clone(), made, pushing));
    Ok(body)
}

async fn push(allowed: Allowed, mut made: Made<impl Parts>, pushing: Pushing) {
    while let Some(part) = made.part {
        if !pushing.send_all(part).await {
            return;
        }
        let next = tokio::select! {
            next = next(&allowed, made.rest, made.held) => next,
            () = pushing.closed() => return,
        };
        made = match next {
            Ok(made) => made,
            // Cut off, since what is sent isn't whole.
            Err(refusal) => {
                pushing.send(Err(io::Error::other(refusal.message))).await;
                return;
            }
        };
    }
}

/// A part that was made.
struct Made<P> {
    rest: P,
    held: Held,
    part: Option<Bytes>,
}

/// Makes the next part, whose memory is held until it was sent.
async fn next<P: Parts>(allowed: &Allowed, mut rest: P, held: Held) -> Answer<Made<P>> {
    let (means, right) = (&allowed.shared().means, allowed.right());
    let mut of_part = means.hold_part(right, P::MOST).await?;
    let make = move |work: &mut Work| {
        let part = rest.next(work)?;
        Ok((rest, part))
    };
    let ((rest, part), held) = allowed.run_with(held, Kind::Long, make).await?;
    of_part.shrink_to(part.as_ref().map_or(0, Vec::len) as u64);
    Ok(Made { rest, held, part: part.map(|part| of_part.keep(part)) })
}
