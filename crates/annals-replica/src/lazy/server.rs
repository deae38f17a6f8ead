//! A database on a server as a source of ranges.

use std::ops::Range;
use std::time::Duration;

use annals::{Cursor, Result, Txid};
use reqwest::Method;
use serde::Deserialize;

use super::ranges::{Contents, Object, Piece, Ranges};
use super::request;
use crate::Http;

#[derive(Deserialize)]
struct Files {
    txid: u64,
    chain: String,
    segments: Vec<Segment>,
    image: Option<Image>,
}

#[derive(Deserialize)]
struct Segment {
    number: u64,
    bytes: u64,
    tag: String,
}

#[derive(Deserialize)]
struct Image {
    root: u64,
    bytes: u64,
    tag: String,
}

fn object(path: String, len: u64, tag: &str) -> Object {
    Object { path, len, tag: Some(format!("\"{tag}\"")) }
}

impl Ranges for Http {
    fn place(&self) -> String {
        self.url().to_string()
    }

    fn look(&self) -> Result<Contents> {
        let Files { txid, chain, segments, image } =
            self.json(self.get("/files", Duration::ZERO)?)?;
        let chain = u64::from_str_radix(&chain, 16).map_err(|_| self.strange("a wrong chain"))?;
        let segment = |it: &Segment| object(format!("/segments/{}", it.number), it.bytes, &it.tag);
        let (newest, kept) = segments.split_last().ok_or_else(|| self.strange("no segments"))?;
        Ok(Contents {
            newest: segment(newest),
            image: image.map(|it| object(format!("/image/{}", it.root), it.bytes, &it.tag)),
            kept: kept.iter().map(|it| (it.number, segment(it))).collect(),
            end: Some(Cursor { txid: Txid(txid), chain }),
        })
    }

    fn read(&self, object: &Object, range: Range<u64>) -> Result<Piece> {
        let asked = self.request(Method::GET, &object.path);
        let asked = request::of_range(asked, object.tag.as_deref(), &range);
        let response = self.send(asked).map_err(|error| self.unreachable(&error))?;
        let piece = request::piece(&self.place(), response, object, &range)?;
        piece.ok_or_else(|| self.strange("another range"))
    }
}
