//! What the crates above this one are made of: `annals-tools` and the program.
//!
//! No program needs it. It is not part of the API, and changes with any version.

pub use crate::db::locate;
pub use crate::replica::Names;
