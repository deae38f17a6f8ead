//! Undoing in a transaction: the methods that programs call.

use std::sync::Arc;

use annals_schema::{RowId, Table, TableNumber, Txid};

use crate::db::changes::moment::Moment;
use crate::db::changes::rows::{fitted, load};
use crate::db::changes::window::Key;
use crate::db::handle::transaction::Transaction;
use crate::db::past::at::Through;
use crate::db::past::lazy::Source;
use crate::db::time::past_of;
use crate::db::undo::erased::Erased;
use crate::db::undo::obstacles::conflict;
use crate::db::undo::revert;
use crate::db::undo::steps::Step;
use crate::{Obstacle, Result};

impl Transaction<'_> {
    /// Restores a row as it was at a moment, by ordinary changes: it is inserted again with its id, or deleted as
    /// [`delete`](Self::delete) does, or its fields that differ are updated.
    ///
    /// The row is as [`Database::at`](crate::Database::at) shows it: a field that was added later gets its default.
    /// The moment is before this transaction; at the last commit it undoes this transaction's changes of the row.
    /// Unique keys and references are checked at commit, so that several rows can be restored together.
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// let before = db.read().txid();
    /// db.write(|tx| Ok(tx.delete(lille)?))?;
    ///
    /// db.write(|tx| Ok(tx.restore(lille, before)?))?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: that of a row by id at the moment, and of the changes.
    ///
    /// # Errors
    /// `NotFound`: no such table or moment, or its history was forgotten; `Conflict`: the table was created after the
    /// moment, a value was erased since, or its blob was forgotten; the errors of [`delete`](Self::delete); `Corrupt`, `Io`.
    pub fn restore(
        &mut self,
        table: TableNumber,
        id: RowId,
        moment: impl Into<Moment>,
    ) -> Result<()> {
        let moment = moment.into();
        self.savepoint(|tx| restore(tx, (table, id), &moment))
    }

    /// Undoes an earlier transaction: the rows that it inserted are deleted, those that it deleted are inserted again
    /// with their ids, and the fields that it changed get their values from before. The comment `revert of
    /// transaction N` is added.
    ///
    /// It refuses if later changes stand against it, and changes nothing then: if a later transaction changed the
    /// same field of a row, deleted or inserted the row, or took its unique key, or if a row refers to an inserted
    /// row by an enforced reference. A later change stands against it even if the value is the same again. The error
    /// names all of them ([`Violation::Conflict`](crate::Violation::Conflict)). Blobs stay in the journal.
    ///
    /// A reverted transaction is restored by reverting the transaction of the revert.
    ///
    /// ```
    /// # annals::schema!("tutorial.schema");
    /// # use tutorial::city;
    /// # fn main() -> annals::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
    /// let lille = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?))?;
    /// db.write(|tx| {
    ///     tx.edit(lille)?.set_name("Lyon")?;
    ///     Ok(())
    /// })?;
    /// let mistake = db.read().txid();
    ///
    /// db.write(|tx| Ok(tx.revert(mistake)?))?;
    /// assert_eq!(db.read().city().require(lille)?.name(), "Lille");
    ///
    /// let refused = db.write(|tx| Ok(tx.revert(mistake)?)).unwrap_err();
    /// assert_eq!(refused.kind(), annals::ErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cost: reading the transaction, and the history of each row that it changed. For references to inserted rows as
    /// [`delete`](Self::delete).
    ///
    /// # Errors
    /// `Conflict`: later changes stand against it. `NotFound`: there is no such transaction, or it was forgotten.
    /// `Invalid`: it changed the schema, or no rows of the present tables. `Corrupt`, `Io`. The commit returns
    /// `Unique` and `Reference` for other changes of the same transaction.
    pub fn revert(&mut self, txid: Txid) -> Result<()> {
        self.savepoint(|tx| revert::revert(tx, &tx.base().published, txid.0))
    }
}

fn restore(tx: &mut Transaction<'_>, key: Key, moment: &Moment) -> Result<()> {
    let (table, id) = key;
    let described = tx.view().table(table)?.schema().clone();
    let then = past_of(tx.database, tx.base().published, moment, Through::Present)?;
    let target = fitted(load(&then, key)?, &described);
    let step = Step { table, id, now: load(tx.view(), key)?, target };
    let erased = Erased::since(&tx.base().published, then.txid().0)?;
    let mut obstacles = step.missing_values(tx, &described, &erased);
    // A row that wasn't there would be deleted: but not because its table wasn't there either.
    if step.target.is_none() {
        obstacles.extend(later_table(tx, &described, id, then.txid().0)?);
    }
    if !obstacles.is_empty() {
        let what = format!("row {} of table `{}` as of {moment}", id.0, described.name);
        return Err(conflict(&format!("cannot restore {what}"), obstacles));
    }
    step.apply(tx)
}

/// Returns what stands against restoring a row as of a moment before its table was created.
///
/// Cost: finding the schema of the moment; if the history index doesn't have it, the whole state.
fn later_table(
    tx: &Transaction<'_>,
    table: &Table,
    id: RowId,
    txid: u64,
) -> Result<Option<Obstacle>> {
    let published = tx.base().published;
    let schema = match Source::of(&published).beginning(txid)? {
        Some(beginning) => Arc::new(beginning.schema),
        None => {
            let moment = Moment::Txid(Txid(txid));
            Arc::clone(past_of(tx.database, published, &moment, Through::Then)?.schema())
        }
    };
    if schema.table(table.number).is_some() {
        return Ok(None);
    }
    let other = match schema.table_named(&table.name) {
        Some(_) => "; the one of that name then was another one: `as_it_was` shows its rows",
        None => "",
    };
    let reason = format!("the table was created later{other}");
    Ok(Some(Obstacle::new(&table.name, id, reason)))
}
