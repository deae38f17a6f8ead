//! The image: the page file beside a journal that holds the store as of some transaction. A cache:
//! deleting it loses nothing, ever.
//!
//! The store is what has pages, and knows nothing of files; it reads them through a [`Source`] by what
//! is [`Stored`].

mod node;
mod stored;

pub(crate) use node::{decode_node, encode_node};
pub(crate) use stored::{Source, Stored};
