//! What is left of a damaged journal besides its transactions, for `annals_tools::salvage`.

mod known;

pub use known::{Part, image_roots, state_of_image, state_of_segment};
