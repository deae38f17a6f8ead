//! What holds for all storages, and for slots on any of them.
#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]

mod defaults;
mod lock;
mod slots;
