//! The image: the page file beside a journal that holds the store as of some transaction. A cache:
//! deleting it loses nothing, ever.
//!
//! The store has the pages, and knows nothing of files. It reads pages through a [`Source`] by their [`Stored`]
//! entries.
//!
//! In reading order: `stored`, `format`, `node` and `catalog` are the bytes; `roots` are the two slots. `walk` visits
//! all objects of a root, noting its `units`; `space` is the free space. `file` is an open image, which is made by
//! `create` and found by `open`; `batch` writes objects, and `publish` makes them a root, also after a draft was put
//! `aside`. `frames` are older roots that are kept; `compact` copies the objects of one to another file. `figures` are
//! what a root says of itself; `check` verifies all of it, and `damage` is the known damage. `exposed` is one root as
//! others may copy it. (`tests`, `miniature` and `testing` are for tests only.)
#![deny(clippy::indexing_slicing)]

mod aside;
mod batch;
mod catalog;
mod check;
mod compact;
mod create;
mod damage;
mod exposed;
mod figures;
mod file;
mod format;
mod frames;
#[cfg(any(test, feature = "testing"))]
mod miniature;
mod node;
mod open;
mod pin;
mod publish;
mod roots;
mod space;
mod stored;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod units;
mod walk;

pub use aside::{Mark, PutAside};
pub use batch::Written;
pub use catalog::{Array, Catalog, Kind};
pub use check::{Report, check, slots};
pub use create::{SetAside, discard, image_name, set_aside};
pub use damage::{Damage, Guarded};
pub use exposed::{Exposed, ExposedPin};
pub use file::Image;
pub(crate) use format::UNIT;
pub use format::{Identity, MAX_HEIGHT, NODE_MAX_LEN, Root, journal_id_of};
pub use frames::{Frames, KeyFrame, KeyFrames};
pub use node::{decode as decode_node, encode as encode_node};
pub use open::{Judging, Opened, Usable, Witness, witnesses};
pub use pin::RootPin;
pub use publish::{Draft, NewRoot};
pub use roots::Slot;
pub use stored::{Packed, Source, Stored};
pub use walk::{WalkStep, read_catalog, walk_array};
