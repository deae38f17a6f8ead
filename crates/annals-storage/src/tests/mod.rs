//! What holds for all storages, and for slots on any of them.

mod lock;
mod slots;
