//! Looking at the files of a database without opening it for work, and verifying them.
//!
//! In reading order: [`scan`] passes on the history; [`inspect`] reads the head and verifies the frames, with what the
//! [`image`] and its [`history`] index say of themselves; [`overview`] reads only what an opening does; [`verify`] all
//! frames, and [`examine`] also replays them, and collects [`findings`] and the [`marks`] of erasures; [`image_check`] verifies an image, and compares it with a replay.

pub(crate) mod examine;
mod findings;
pub(crate) mod history;
pub(crate) mod image;
pub(crate) mod image_check;
pub(crate) mod inspect;
mod marks;
pub(crate) mod overview;
pub(crate) mod scan;
pub(crate) mod verify;
