//! Values that are handed over without a copy: a buffer of Arrow that is a page of a snapshot, and keeps the snapshot.
//!
//! Invariants
//! 1. The values of a [`VectorView`](annals::store::VectorView) that are borrowed live as long as the view that they
//!    were borrowed from, and don't change. The snapshot counts its references to that view: moving or cloning a snapshot
//!    doesn't move it.
//! 2. A buffer over such values owns a clone of the snapshot. It is dropped with the buffer's last clone.
//! 3. A [`Primitive`] has no padding, so its bytes are initialised.
#![allow(unsafe_code, reason = "Arrow takes foreign memory by an address and its owner")]

use std::borrow::Cow;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use annals::store::Primitive;
use annals::{FieldNumber, Result, RowId, Snapshot, TableNumber};
use arrow_buffer::{Buffer, MutableBuffer};

/// The owner of the memory of a page.
struct Pin(#[expect(dead_code, reason = "it is there to be dropped")] Snapshot);

/// Nothing of the snapshot is seen through a pin, so a panic can't leave anything half done for whoever has it.
impl RefUnwindSafe for Pin {}

/// The first values of a field, as far as they are in one page.
pub(crate) struct Part {
    /// The values.
    pub(crate) buffer: Buffer,
    /// How many there are.
    pub(crate) count: u64,
}

/// The place of values: a field of rows with consecutive ids.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) table: TableNumber,
    pub(crate) field: FieldNumber,
    pub(crate) first: RowId,
    pub(crate) count: u64,
}

/// Returns the values from a place on that are in one page: that page itself, if the snapshot has it in memory in the
/// machine's order of bytes, else a copy. There is any value in the place of a null.
///
/// # Errors
/// Those of [`annals::TableView::vector`].
pub(crate) fn first_part<T: Primitive>(snapshot: &Snapshot, at: Place) -> Result<Option<Part>> {
    let vector = snapshot.table(at.table)?.vector(at.field, at.first, at.count)?;
    let Some(chunk) = vector.chunks_with_nulls::<T>()?.next().transpose()? else { return Ok(None) };
    let count = chunk.len() as u64;
    let buffer = match chunk {
        Cow::Borrowed(values) if !values.is_empty() => {
            let owner = Arc::new(Pin(snapshot.clone()));
            let bytes = bytes_of(values);
            // SAFETY: the address is that of a slice, so it isn't null, and valid for its length. The values are
            // borrowed from the snapshot's view, which `owner` keeps (invariants 1 and 2).
            unsafe {
                Buffer::from_custom_allocation(NonNull::from(bytes).cast(), bytes.len(), owner)
            }
        }
        values => {
            let mut copy = MutableBuffer::new(size_of_val(&*values));
            copy.extend_from_slice(bytes_of(&values));
            copy.into()
        }
    };
    Ok(Some(Part { buffer, count }))
}

/// Returns the bytes of values.
pub(crate) fn bytes_of<T: Primitive>(values: &[T]) -> &[u8] {
    // SAFETY: invariant 3; the slice covers the same memory.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests;
