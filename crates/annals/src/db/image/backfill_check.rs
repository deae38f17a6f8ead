//! The slow check of each backfill, in test builds: the figures that the published root and its key frames say of
//! themselves are computed again from what they reach, and the root is loaded again, and must equal the view that was
//! written.
//!
//! For the latter both are walked completely, so a backfill costs as much again as reading everything. Images of more
//! than [`LARGEST`] bytes are left out of that.

use std::sync::Arc;

use crate::db::follow::image_state::Working;
use crate::db::follow::opening::load;
use crate::db::image::compare;
use crate::image::{Image, Root, read_catalog};
use crate::store::{Pager, View};
use crate::{ErrorKind, Result};

/// The longest image that is compared with its view, in bytes.
const LARGEST: u64 = 4 << 20;

/// Compares the last published root with the view that it is of, and its figures with what it reaches.
///
/// # Panics
/// They differ. (A read that fails says nothing about that.)
pub(in crate::db) fn compare(working: &Working, view: &View) {
    let (Some((image, _)), Some(root)) = (&working.image, &working.root) else { return };
    // Tests inject a single wrong read.
    let told = difference(image, root, view).or_else(|_| difference(image, root, view));
    let number = root.number;
    match told {
        Ok(None) => {}
        Ok(Some(what)) => panic!("root {number} of the image and its view differ: {what}"),
        Err(error) if error.kind() == ErrorKind::Io => {}
        // Tests damage the output of earlier backfills.
        Err(_) if image.has_older_damage(root) => {}
        Err(error) => panic!("root {number} of the image can't be read: {error}"),
    }
}

/// Returns the first difference, if there is one.
fn difference(image: &Arc<Image>, root: &Root, view: &View) -> Result<Option<String>> {
    let wrong = image.wrong_figures(root)?;
    if wrong.is_some() || root.end > LARGEST {
        return Ok(wrong);
    }
    let pager = Arc::new(Pager::new(Arc::clone(image) as _, u64::MAX, true));
    let catalog = read_catalog(&**image, root)?;
    let (_, loaded) = load(&catalog, &pager)?;
    loaded.check()?;
    compare::difference(&loaded, view)
}
