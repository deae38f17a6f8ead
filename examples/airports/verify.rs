//! Proves that the database equals the state of the last day, field by field.

use crate::airports::Snapshot;
use crate::{Anything, LAST_DAY, source, tables};

/// Compares one table: every row of the file is there with just these values, and no other row is.
macro_rules! compare {
    ($now:expr, $table:ident) => {{
        let mut expected = 0;
        source::rows(LAST_DAY, stringify!($table), |id, fields| {
            expected += 1;
            let row = $now.$table().require(crate::airports::$table::Id::from_u64(id))?;
            match tables::$table::difference(&row, fields)? {
                None => Ok(()),
                Some(field) => Err(format!(
                    "{} {id} differs in {field} from the state of {LAST_DAY}",
                    stringify!($table)
                )
                .into()),
            }
        })?;
        if $now.$table().len() != expected {
            let found = $now.$table().len();
            return Err(format!(
                "{} has {found} rows, but should have {expected}",
                stringify!($table)
            )
            .into());
        }
        expected
    }};
}

/// Compares all tables.
pub(crate) fn last_day(now: &Snapshot) -> Result<(), Anything> {
    let rows = compare!(now, countries)
        + compare!(now, regions)
        + compare!(now, navaids)
        + compare!(now, airport_frequencies)
        + compare!(now, runways);
    println!("{rows} rows equal the state of {LAST_DAY}, field by field");
    Ok(())
}
