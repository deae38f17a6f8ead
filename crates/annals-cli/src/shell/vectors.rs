//! The commands that change rows with consecutive ids.

use annals::event::{Event, Vector, is_erased};
use annals::{Error, Result, RowId, TableNumber, Transaction, Value};

use super::screen::Screen;
use super::words::{Words, field, lent, number, row_id, table, value};

/// `insert_vector T ID COUNT`
pub(crate) fn insert(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let (table, id, count) = run(transaction, words)?;
    transaction.insert_vector_at(table, id, count)
}

/// `update_vector T ID FIELD COUNT VALUE..`
pub(crate) fn update(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [name, id, field_name, count, values @ ..] = words.arguments() else {
        return Err(words.misused());
    };
    let schema = transaction.view().schema().clone();
    let table = table(&schema, name)?;
    let field = field(table, field_name)?;
    let (id, count) = (row_id(id)?, number("COUNT", count)?);
    if count != values.len() as u64 {
        let given = values.len();
        return Err(Error::invalid(format!("expected {count} values, as COUNT says, not {given}")));
    }
    let values: Vec<Value> =
        values.iter().map(|word| value(table, field, word)).collect::<Result<_>>()?;
    let (values, table, number) = (lent(&values), table.number, field.number);
    let values_of = Vector::Values(&values);
    match values.iter().any(|value| is_erased(field, value)) {
        true => {
            let update = Event::UpdateVector { table, id, field: number, values: values_of };
            transaction.apply_erased(&update)
        }
        false => transaction.update_vector(table, id, number, values_of),
    }
}

/// `delete_vector T ID COUNT`
pub(crate) fn delete(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let (table, id, count) = run(transaction, words)?;
    transaction.delete_vector(table, id, count)
}

/// Reads `T ID COUNT`.
fn run(transaction: &Transaction<'_>, words: &Words<'_>) -> Result<(TableNumber, RowId, u64)> {
    let [name, id, count] = words.exactly()?;
    let number_of_table = table(transaction.view().schema(), name)?.number;
    Ok((number_of_table, row_id(id)?, number("COUNT", count)?))
}
