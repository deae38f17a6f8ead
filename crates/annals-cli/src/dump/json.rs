//! The present state as one JSON object.

use annals::Result;

use crate::output::Output;
use crate::present::Present;

/// Prints an array of rows for each table.
pub(crate) fn json(present: &Present<'_>, output: &mut Output) -> Result<()> {
    let mut text = String::from("{");
    for (place, table) in present.schema().tables().iter().enumerate() {
        text.push_str(if place == 0 { "\n" } else { ",\n" });
        annals_json::push_string(&mut text, &table.name);
        text.push_str(": [");
        let keys: Vec<String> =
            table.fields.iter().map(|field| annals_json::key(table, field)).collect();
        for (place, row) in present.table(table.number)?.rows().enumerate() {
            let row = row?;
            text.push_str(if place == 0 { "\n{\"id\": " } else { ",\n{\"id\": " });
            text.push_str(&row.id().0.to_string());
            for (field, key) in table.fields.iter().zip(&keys) {
                text.push_str(", ");
                annals_json::push_string(&mut text, key);
                text.push_str(": ");
                annals_json::push_value(&mut text, row.value(field.number));
            }
            text.push('}');
            output.write(&text)?;
            text.clear();
        }
        text.push(']');
    }
    text.push_str("\n}");
    output.line(&text)
}
