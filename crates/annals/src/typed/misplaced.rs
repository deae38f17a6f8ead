//! Verbs of a transaction where a newcomer may look for them: calling one doesn't compile, and says where they are.

use super::{Database, Reader, Snapshot, Table, TypedSchema};

/// What writes rows by verbs. Nothing but a transaction does, which has the verbs as methods of its own.
#[diagnostic::on_unimplemented(
    message = "only a transaction writes rows; databases, snapshots and tables have no verbs",
    label = "a transaction has this verb",
    note = "write `db.write(|tx| Ok(tx.insert(city::New {{ .. }})?))`; `tx` has the verbs `insert`, `edit`, `update`, `upsert` and `delete`, and what they are given says which table is meant"
)]
pub trait Writes {}

macro_rules! misplaced {
    ($($verb:ident)*) => {$(
        #[doc(hidden)]
        pub fn $verb<T>(&self, _: T)
        where
            Self: Writes,
        {
        }
    )*};
}

impl<R> Table<'_, R> {
    misplaced!(insert edit update upsert delete);
}

impl<S: TypedSchema> Database<S> {
    misplaced!(insert edit update upsert delete);
}

impl<S: TypedSchema> Reader<S> {
    misplaced!(insert edit update upsert delete);
}

impl<S: TypedSchema> Snapshot<S> {
    misplaced!(insert edit update upsert delete);
}
