//! The contents of a database, as text that can be compared.

use std::fmt::Write as _;

use annals::{Blob, Snapshot};

/// How many rows of a table, or of an index, are looked at.
const ROWS: usize = 300;
/// How many bytes of a blob are looked at.
const BYTES: usize = 1 << 20;

/// Writes down the schema, rows, next ids, the order of each index, and all blobs.
///
/// # Panics
/// If something of a committed state can't be read.
pub(crate) fn content(view: &Snapshot) -> String {
    let mut text = format!("{}{:?}\n", view.schema().to_text(), view.schema());
    let all = write_tables(view, &mut text).and_then(|()| write_indexes(view, &mut text));
    assert!(all.is_ok(), "{all:?}");
    for number in 1.. {
        let Ok(mut blob) = view.blob(Blob(number)) else { break };
        let bytes = blob.to_vec(BYTES);
        let _infallible = writeln!(text, "blob {number}: {bytes:?}");
    }
    text
}

fn write_tables(view: &Snapshot, text: &mut String) -> annals::Result<()> {
    for table in view.schema().tables() {
        let rows = view.table(table.number)?;
        *text += &format!("{}: {} rows, next {}\n", table.name, rows.len(), rows.next_id());
        for row in rows.rows().take(ROWS) {
            let row = row?;
            let values: Vec<_> = table.fields.iter().map(|field| row.value(field.number)).collect();
            *text += &format!("  {:?} {values:?}\n", row.id());
        }
    }
    Ok(())
}

fn write_indexes(view: &Snapshot, text: &mut String) -> annals::Result<()> {
    for index in view.schema().indexes() {
        *text += &format!("{}:", index.name);
        for row in view.index(index.number)?.rows().take(ROWS) {
            *text += &format!(" {}", row?.id().0);
        }
        text.push('\n');
    }
    Ok(())
}
