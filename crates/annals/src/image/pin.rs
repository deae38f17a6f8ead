//! What keeps the space of a root from being used again.

/// Held by every view that lies over the base of a root.
#[derive(Debug)]
pub(crate) struct RootPin {
    /// The number of the root.
    pub(crate) number: u64,
}
