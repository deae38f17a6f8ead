//! The slow truth beside each backfill, in test builds: what it published is loaded anew, and must be
//! the view that it took.
//!
//! Both are walked wholly, so a backfill costs as much again as reading all that there is. Images of more
//! than [`LARGEST`] bytes are left out.

use std::sync::Arc;

use annals_schema::Blob;

use super::imager::Working;
use super::opening::load;
use crate::image::{Image, Root, read_catalog};
use crate::store::{Pager, View};
use crate::{ErrorKind, Result};

/// The longest image that is compared, in bytes.
const LARGEST: u64 = 4 << 20;

/// Compares what was published last with the view that it stands for.
///
/// # Panics
/// They differ. (A read that fails says nothing about that.)
pub(super) fn compare(working: &Working, view: &View) {
    let (Some((image, _)), Some(root)) = (&working.image, &working.root) else { return };
    if root.end > LARGEST {
        return;
    }
    // Tests let one read go wrong.
    let told = difference(image, root, view).or_else(|_| difference(image, root, view));
    let number = root.number;
    match told {
        Ok(None) => {}
        Ok(Some(what)) => panic!("root {number} of the image has another {what} than its view"),
        Err(error) if error.kind() == ErrorKind::Io => {}
        Err(error) => panic!("root {number} of the image can't be read: {error}"),
    }
}

/// Says what differs first, if anything does.
fn difference(image: &Arc<Image>, root: &Root, view: &View) -> Result<Option<String>> {
    let pager = Arc::new(Pager::new(Arc::clone(image) as _, u64::MAX, true));
    let catalog = read_catalog(&**image, root)?;
    let (_, loaded) = load(&catalog, &pager)?;
    if loaded.schema() != view.schema() {
        return Ok(Some("schema".to_owned()));
    }
    loaded.check()?;
    for table in view.schema().tables() {
        let (a, b) = (loaded.table(table.number)?, view.table(table.number)?);
        if (a.len(), a.next_id()) != (b.len(), b.next_id()) {
            return Ok(Some(format!("number of rows, or next id, of `{}`", table.name)));
        }
        for (a, b) in a.rows().zip(b.rows()) {
            let (a, b) = (a?, b?);
            let is_same = |number| a.value(number) == b.value(number);
            if a.id() != b.id() || !table.fields.iter().all(|field| is_same(field.number)) {
                return Ok(Some(format!("row {} of `{}`", b.id().0, table.name)));
            }
        }
    }
    for index in view.schema().indexes() {
        let (a, b) = (loaded.index(index.number)?.rows(), view.index(index.number)?.rows());
        for (a, b) in a.zip(b) {
            if a?.id() != b?.id() {
                return Ok(Some(format!("order of `{}`", index.name)));
            }
        }
    }
    blobs(&loaded, view)
}

/// Compares where the pieces of all blobs are.
fn blobs(loaded: &View, view: &View) -> Result<Option<String>> {
    for blob in (1..).map(Blob) {
        let (len, mut offset) = (view.blob_len(blob)?, 0);
        if loaded.blob_len(blob)? != len {
            return Ok(Some(format!("length of blob {}", blob.0)));
        }
        if len.is_none() {
            break;
        }
        while let Some(piece) = view.blob_piece(blob, offset)? {
            if loaded.blob_piece(blob, offset)? != Some(piece) {
                return Ok(Some(format!("piece of blob {} at {offset}", blob.0)));
            }
            if piece.len == 0 {
                break;
            }
            offset = piece.offset + u64::from(piece.len);
        }
    }
    Ok(None)
}
