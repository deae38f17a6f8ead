//! The store: tables and indexes in memory, made of copy-on-write pages.

pub use annals_store::{
    Cell, Dangling, Fetched, FirstOfEach, Groups, IndexCursor, IndexRows, IndexView, Primitive,
    Row, Rows, Selected, Store, TableView, Uniqueness, Values, VectorView, View,
};

pub(crate) use annals_store::{
    BaseRoot, BlobPiece, CellOf, Keep, Pager, PagerUse, Past, PastRow, Piece, RowRuns, Saved,
    Savepoint, VariantNumber, collation, history, pages_of_process, sealed,
};
#[cfg(test)]
pub(crate) use annals_store::{TestImage, from_cells, to_cells};
