//! The commands that change rows, or note something in the journal.

use annals::event::{Event, has_erased, is_erased};
use annals::storage::Clock;
use annals::{Error, Result, RowId, Table, Timestamp, Transaction};
use annals_schema::Token;

use super::screen::Screen;
use super::words::{Words, all_values, field, lent, row_id, table, value};

/// `insert T VALUE..`
pub(crate) fn insert(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    screen: &mut Screen,
) -> Result<()> {
    let Some((name, values)) = words.arguments().split_first() else {
        return Err(words.misused());
    };
    let schema = transaction.view().schema().clone();
    let table = table(&schema, name)?;
    let values = all_values("insert T", table, values)?;
    let values = lent(&values);
    let id = match has_erased(table, &values) {
        true => {
            let id = RowId(transaction.view().table(table.number)?.next_id());
            let insert = Event::Insert { table: table.number, id, values: &values };
            transaction.apply_erased(&insert)?;
            id
        }
        false => transaction.insert(table.number, &values)?,
    };
    tell_row(screen, table, id)
}

/// `insert_at T ID VALUE..`
pub(crate) fn insert_at(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [name, id, values @ ..] = words.arguments() else {
        return Err(words.misused());
    };
    let schema = transaction.view().schema().clone();
    let table = table(&schema, name)?;
    let id = row_id(id)?;
    let before = format!("{} T ID", words.usage.name);
    let values = all_values(&before, table, values)?;
    let values = lent(&values);
    match has_erased(table, &values) {
        true => {
            transaction.apply_erased(&Event::Insert { table: table.number, id, values: &values })
        }
        false => transaction.insert_at(table.number, id, &values),
    }
}

/// `insert_into T ID [VALUE..]`
pub(crate) fn insert_into(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    screen: &mut Screen,
) -> Result<()> {
    if words.arguments().len() > 2 {
        return insert_at(transaction, words, screen);
    }
    let [name, id] = words.exactly()?;
    let schema = transaction.view().schema().clone();
    transaction.insert_zero(table(&schema, name)?.number, row_id(id)?)
}

/// `update T ID FIELD VALUE`
pub(crate) fn update(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [name, id, field_name, value_word] = words.exactly()?;
    let schema = transaction.view().schema().clone();
    let table = table(&schema, name)?;
    let field = field(table, field_name)?;
    let id = row_id(id)?;
    let value = value(table, field, value_word)?;
    let (table, number, value) = (table.number, field.number, value.as_ref());
    match is_erased(field, &value) {
        true => transaction.apply_erased(&Event::Update { table, id, field: number, value }),
        false => transaction.update(table, id, number, value),
    }
}

/// `delete_from T ID`
pub(crate) fn delete_from(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [name, id] = words.exactly()?;
    let schema = transaction.view().schema().clone();
    transaction.delete(table(&schema, name)?.number, row_id(id)?)
}

/// `comment "TEXT"`
pub(crate) fn comment(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [text] = words.exactly()?;
    if !text.quoted {
        return Err(Error::invalid("the text of a comment stands in quotes: comment \"TEXT\""));
    }
    transaction.comment(&text.text)
}

/// `timestamp [SECONDS]`
pub(crate) fn timestamp(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let seconds = match words.arguments() {
        [] => now(),
        [seconds, date @ ..] if !seconds.quoted => {
            let seconds = seconds.text.parse().map_err(|_| {
                let text = annals_schema::shorten(&seconds.text);
                Error::invalid(format!("{text:?} is not a number of seconds since 1970"))
            })?;
            is_date_of(seconds, date).then_some(seconds).ok_or_else(|| words.misused())?
        }
        _ => return Err(words.misused()),
    };
    transaction.timestamp(seconds)
}

/// True if nothing follows the seconds, or joedb_logdump's text: `2026-11-22 15:24:46 GMT`.
fn is_date_of(seconds: i64, words: &[Token<'_>]) -> bool {
    let time = Timestamp::from_seconds(seconds).to_string();
    match (words, time.trim_end_matches('Z').split_once('T')) {
        ([], _) => true,
        ([date, clock, zone], Some(time)) => {
            (date.text.as_ref(), clock.text.as_ref()) == time && zone.is("GMT")
        }
        _ => false,
    }
}

/// `valid_data`
pub(crate) fn valid_data(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [] = words.exactly()?;
    transaction.valid_data()
}

/// Shows a person at a terminal which id a row got; a script has no use for it.
fn tell_row(screen: &mut Screen, table: &Table, id: RowId) -> Result<()> {
    screen.remark(&format!("{} {}", table.name, id.0))
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    Timestamp(annals::storage::SystemClock.now()).seconds()
}
