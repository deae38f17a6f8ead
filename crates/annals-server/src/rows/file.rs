//! All rows of a table or an index as a file, which is sent as it is made.

use std::sync::Arc;

use annals::{Row, Snapshot, Table, TableNumber};
use axum::http::header;
use axum::response::IntoResponse;

use crate::answer::{Answer, Refusal};
use crate::means::Kind;
use crate::parts::{self, Parts};
use crate::rights::Allowed;
use crate::rows::shown::Shown;
use crate::rows::{Asked, Format, Take, fill, state_as, table};
use crate::work::Work;

/// The size of the parts in which a file is sent.
const PART: usize = 256 << 10;

/// Sends the rows that are asked for.
pub(super) async fn answer(allowed: &Allowed, of: String, asked: Asked, format: Format) -> Answer {
    if asked.limit.is_some() {
        return Err(Refusal::bad("file: it has all rows; leave out limit"));
    }
    let (kind, ending) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "csv"),
        Format::Ndjson => ("application/x-ndjson", "ndjson"),
    };
    // Only ASCII is understood by all.
    let name = if of.is_ascii() { &of } else { "table" };
    let name = format!("attachment; filename=\"{name}.{ending}\"");
    let local = Arc::clone(&allowed.local);
    let begin = move |work: &mut Work| {
        let now = state_as(&local, asked.at.as_deref(), asked.as_it_was)?;
        let table = table(now.schema(), &of)?.number;
        let mut file = File { now, table, asked, format, is_begun: false, is_over: false };
        // An error before the first part is one of the answer.
        let first = file.next(work)?.unwrap_or_default();
        Ok((first, file))
    };
    let ((first, file), held) = allowed.run(Kind::Long, begin).await?;
    let body = parts::send(allowed, first, file, held).await?;
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name.as_str())], body)
        .into_response())
}

/// A file, as far as it isn't made yet.
struct File {
    now: Snapshot,
    table: TableNumber,
    /// The rows that are left.
    asked: Asked,
    format: Format,
    is_begun: bool,
    is_over: bool,
}

impl Parts for File {
    fn next(&mut self, work: &mut Work) -> Answer<Option<Vec<u8>>> {
        if self.is_over {
            return Ok(None);
        }
        let schema = self.now.schema();
        let table = schema.table(self.table).ok_or_else(|| Refusal::not_found("no such table"))?;
        let shown = Shown::new(table, self.asked.fields.as_deref())?;
        let mut part = Part { text: String::new(), format: self.format };
        if !std::mem::replace(&mut self.is_begun, true) && self.format == Format::Csv {
            part.text.push_str("id");
            for field in &shown.table.fields {
                part.text.push(',');
                annals_json::push_csv(&mut part.text, &annals_json::key(table, field));
            }
            part.text.push('\n');
        }
        match fill(work, &self.now, (table, &shown), &self.asked, &mut part)? {
            Some(last) => self.asked.after = Some(last.0.to_string()),
            None => self.is_over = true,
        }
        Ok(Some(part.text.into_bytes()))
    }
}

/// Some rows as text.
struct Part {
    text: String,
    format: Format,
}

impl Take for &mut Part {
    fn is_full(&self) -> bool {
        self.text.len() > PART
    }

    fn bytes(&self) -> usize {
        self.text.capacity()
    }

    fn take(&mut self, table: &Table, row: &Row<'_>) {
        match self.format {
            Format::Csv => annals_json::push_csv_row(&mut self.text, table, row),
            Format::Ndjson => {
                annals_json::push_row(&mut self.text, table, row);
                self.text.push('\n');
            }
        }
    }
}
