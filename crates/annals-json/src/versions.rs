//! Versions of a row, and since when its fields have their values.

use annals::{Blame, Field, Table, Timestamp, Txid, Value, Version, VersionKind};

use crate::{key, push_display, push_string, push_value};

/// Appends a version of a row as an object: `txid`, `time`, `comment` (null if there is none; several are lines of
/// one), `kind`, and `old` and `new`, the fields that changed, null where there was no row.
pub fn push_version(text: &mut String, table: &Table, version: &Version) {
    let Version { txid, time, ref comments, .. } = *version;
    text.push('{');
    push_origin(text, txid, time, comments, version.kind());
    for (name, side) in [("old", &version.change.before), ("new", &version.change.after)] {
        push_display(text, format_args!(",\"{name}\":"));
        if side.is_none() {
            text.push_str("null");
            continue;
        }
        let mut separator = '{';
        for (field, before, after) in changes(table, version) {
            text.push(separator);
            separator = ',';
            push_string(text, &key(table, field));
            text.push(':');
            let value = if name == "old" { before } else { after };
            value.into_iter().for_each(|value| push_value(text, value.as_ref()));
        }
        text.push_str(if separator == '{' { "{}" } else { "}" });
    }
    text.push('}');
}

/// Appends since when a field has its value, as an object: `field`, `value`, and the transaction as in a version.
pub fn push_blame(text: &mut String, table: &Table, blame: &Blame) {
    let name = table.field(blame.field).map(|field| key(table, field));
    text.push_str("{\"field\":");
    push_string(text, &name.unwrap_or_default());
    text.push_str(",\"value\":");
    push_value(text, blame.value.as_ref());
    text.push(',');
    push_origin(text, blame.txid, blame.time, &blame.comments, blame.kind);
    text.push('}');
}

/// Returns the fields that a version changes, with both values.
pub fn changes<'v>(
    table: &'v Table,
    version: &'v Version,
) -> impl Iterator<Item = (&'v Field, Option<&'v Value>, Option<&'v Value>)> {
    version.change.fields().filter_map(|number| {
        let field = table.field(number)?;
        let value = |side: &'v Option<Vec<Value>>| side.as_ref()?.get(number.0 as usize);
        Some((field, value(&version.change.before), value(&version.change.after)))
    })
}

fn push_origin(
    text: &mut String,
    txid: Txid,
    time: Timestamp,
    comments: &[String],
    kind: VersionKind,
) {
    push_display(text, format_args!("\"txid\":{txid},\"time\":\"{time}\",\"comment\":"));
    match comments {
        [] => text.push_str("null"),
        comments => push_string(text, &comments.join("\n")),
    }
    push_display(text, format_args!(",\"kind\":\"{}\"", kind.name()));
}
