//! Properties that hold for any bytes. Each function here takes some and panics if it doesn't hold.
//!
//! `fuzz/` lets libFuzzer look for bytes that break one; the test of this crate feeds each the files
//! that are kept in `fuzz/corpus`, and changed ones. In reading order: `schema`, `codec`,
//! `journal`, which makes its files with `draft` and weighs them with `weight`, `image`, `shell`, `joedb`, and what
//! servers and their clients send each other: `request` and `answer`.

#![cfg(feature = "testing")]

mod answer;
mod codec;
mod content;
mod draft;
mod file;
mod image;
mod joedb;
mod journal;
#[path = "../../annals/tests/it/hostile/memory.rs"]
mod memory;
mod request;
mod schema;
mod shell;
mod weight;

pub use answer::answer;
pub use codec::codec;
pub use image::image;
pub use joedb::joedb;
pub use journal::journal;
pub use request::request;
pub use schema::schema;
pub use shell::shell;

/// Something that must hold for any bytes.
pub type Body = fn(&[u8]);

/// All of them, by the names of their folders in `fuzz/corpus`.
pub const ALL: [(&str, Body); 8] = [
    ("schema", schema),
    ("codec", codec),
    ("journal", journal),
    ("image", image),
    ("shell", shell),
    ("joedb", joedb),
    ("request", request),
    ("answer", answer),
];
