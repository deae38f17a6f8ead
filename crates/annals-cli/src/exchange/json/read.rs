//! JSON with a schema of Annals, and how it is recognized.

use annals::{Error, Field, FieldNumber, Result, Schema, Table, TableNumber, Type, Value};
use annals_json::Scalar;
use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::reader::{Reader, Token};
use super::{Layout, Source, VERSION, foreign, twice};
use crate::exchange::arrival::{self, Arrived, Loading, To};
use crate::{files, language};

/// Makes a database of a file: with the file's schema, or with one that follows from the values.
pub(crate) fn import(source: &Source, to: &To) -> Result<Arrived> {
    arrival::refuse_existing(&to.file)?;
    let bar = files::progress(files::length(&source.path));
    let mut reader = source.open(&bar)?;
    let arrived = match header(&mut reader)? {
        Some(header) => arrival::fill(to, &header.schema.clone(), |loading| {
            header.counts.iter().try_for_each(|count| {
                loading.set_next_id(count.table, count.next_id).map_err(|error| reader.at(error))
            })?;
            for &(table, field) in &header.erased {
                loading.expect_erased(table, field);
            }
            Rows { reader: &mut reader, header, key: String::new(), text: String::new() }
                .read(source.layout, loading)
        }),
        None => foreign::import(source, to, &bar),
    };
    bar.finish_and_clear();
    arrived
}

/// The part before the rows.
struct Header {
    schema: Schema,
    counts: Vec<Count>,
    /// Fields that may not be null, where null says that a value was erased.
    erased: Vec<(TableNumber, FieldNumber)>,
}

/// The declared count of a table's rows, and the number read.
struct Count {
    table: TableNumber,
    rows: Option<u64>,
    next_id: u64,
    came: u64,
}

/// Reads the header; `None` if the file isn't one that Annals wrote.
fn header(reader: &mut Reader) -> Result<Option<Header>> {
    let (mut key, mut text) = (String::new(), String::new());
    if reader.peek()? != Some(b'{') {
        return Ok(None);
    }
    let mut items = reader.open(b'{')?;
    if !reader.next_key(&mut items, &mut key)? || key != "annals" {
        return Ok(None);
    }
    if !matches!(reader.peek()?, Some(b'0'..=b'9')) {
        return Ok(None);
    }
    reader.scalar(&mut text)?;
    if text != VERSION {
        let what = format!("`annals` is {text}: this program reads version {VERSION}");
        return Err(reader.at(Error::new(annals::ErrorKind::Unsupported, what)));
    }
    let mut header: Option<Header> = None;
    while reader.next_key(&mut items, &mut key)? {
        match (key.as_str(), &mut header) {
            ("schema", None) => {
                let schema = schema(reader)?;
                header = Some(Header { schema, counts: Vec::new(), erased: Vec::new() });
            }
            ("counts", Some(header)) if header.counts.is_empty() => {
                header.counts = counts(reader, &header.schema)?;
            }
            ("erased", Some(header)) if header.erased.is_empty() => {
                header.erased = erased(reader, &header.schema)?;
            }
            // The caller, which has the database, reads the rows of a document.
            ("tables", Some(_)) => return Ok(header.map(Header::counted)),
            _ => {
                let message =
                    "`annals` is followed by `schema`, then `counts` and `erased`, then `tables`";
                return Err(
                    reader.wrong(format_args!("`{key}` stands at a wrong place: {message}"))
                );
            }
        }
    }
    let header = header.ok_or_else(|| reader.wrong("there is no `schema`"))?;
    Ok(Some(header.counted()))
}

impl Header {
    /// Adds the tables of which nothing is said.
    fn counted(mut self) -> Self {
        for table in self.schema.tables() {
            let table = table.number;
            if self.counts.iter().all(|count| count.table != table) {
                self.counts.push(Count { table, rows: None, next_id: 0, came: 0 });
            }
        }
        self
    }
}

fn schema(reader: &mut Reader) -> Result<Schema> {
    let (mut lines, mut line) = (String::new(), String::new());
    let mut items = reader.open(b'[')?;
    while reader.next(&mut items)? {
        reader.string(&mut line)?;
        if line.contains(['\n', '\r']) {
            return Err(reader.wrong("a line of the schema can't hold a line feed"));
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    language::schema_of(&lines).map_err(|error| reader.at(error))
}

fn counts(reader: &mut Reader, schema: &Schema) -> Result<Vec<Count>> {
    let (mut key, mut text) = (String::new(), String::new());
    let mut counts = Vec::new();
    let mut tables = reader.open(b'{')?;
    while reader.next_key(&mut tables, &mut key)? {
        let table = language::table(schema, &key).map_err(|error| reader.at(error))?.number;
        if counts.iter().any(|known: &Count| known.table == table) {
            return Err(twice(reader, &key));
        }
        let mut count = Count { table, rows: None, next_id: 0, came: 0 };
        let mut items = reader.open(b'{')?;
        while reader.next_key(&mut items, &mut key)? {
            reader.scalar(&mut text)?;
            let number =
                text.parse().map_err(|_| reader.wrong(format_args!("{text:?} is no count")))?;
            match key.as_str() {
                "rows" => count.rows = Some(number),
                "next_id" => count.next_id = number,
                _ => {
                    return Err(reader
                        .wrong(format_args!("`{key}` is no count; they are rows and next_id")));
                }
            }
        }
        counts.push(count);
    }
    Ok(counts)
}

/// Reads the fields that have erased values, as pairs of a table and a field.
fn erased(reader: &mut Reader, schema: &Schema) -> Result<Vec<(TableNumber, FieldNumber)>> {
    let (mut name, mut all) = (String::new(), Vec::new());
    let mut pairs = reader.open(b'[')?;
    while reader.next(&mut pairs)? {
        let mut names = Vec::new();
        let mut items = reader.open(b'[')?;
        while reader.next(&mut items)? {
            reader.string(&mut name)?;
            names.push(name.clone());
        }
        let [table, field] = names.as_slice() else {
            return Err(reader.wrong("`erased` has pairs of a table and a field"));
        };
        let table = language::table(schema, table).map_err(|error| reader.at(error))?;
        let Some(known) = table.fields.iter().find(|known| known.name == *field) else {
            let table = &table.name;
            return Err(reader.wrong(format_args!("table {table} has no field {field:?}")));
        };
        all.push((table.number, known.number));
    }
    Ok(all)
}

/// The rows of a file.
struct Rows<'r> {
    reader: &'r mut Reader,
    header: Header,
    key: String,
    text: String,
}

impl Rows<'_> {
    fn read(mut self, layout: Layout, loading: &mut Loading<'_>) -> Result<()> {
        let schema = self.header.schema.clone();
        match layout {
            Layout::Document => self.tables(&schema, loading)?,
            Layout::Lines => {
                while self.reader.peek()?.is_some() {
                    let mut items = self.reader.open(b'{')?;
                    if !self.reader.next_key(&mut items, &mut self.key)? {
                        return Err(self
                            .reader
                            .wrong("a line has the name of a table and its row"));
                    }
                    let table = language::table(&schema, &self.key);
                    let table = table.map_err(|error| self.reader.at(error))?;
                    self.row(table, loading)?;
                    self.reader.expect(b'}')?;
                }
            }
        }
        for count in &self.header.counts {
            if let Some(rows) = count.rows.filter(|rows| *rows != count.came) {
                let name = schema.table(count.table).map_or("", |table| &table.name);
                return Err(self.reader.wrong(format_args!(
                    "table {name} should have {rows} rows, and has {}: the file isn't whole, or was \
                     changed (without `counts` the rows are not counted)",
                    count.came
                )));
            }
        }
        Ok(())
    }

    /// Reads the tables of a document, up to its end.
    fn tables(&mut self, schema: &Schema, loading: &mut Loading<'_>) -> Result<()> {
        // A document without rows ended after its schema.
        if self.reader.peek()?.is_none() {
            return Ok(());
        }
        let (mut tables, mut known) = (self.reader.open(b'{')?, Vec::new());
        while self.reader.next_key(&mut tables, &mut self.key)? {
            let table =
                language::table(schema, &self.key).map_err(|error| self.reader.at(error))?;
            if known.contains(&table.number) {
                return Err(twice(self.reader, &self.key));
            }
            known.push(table.number);
            let mut rows = self.reader.open(b'[')?;
            while self.reader.next(&mut rows)? {
                self.row(table, loading)?;
            }
        }
        self.reader.expect(b'}')?;
        self.reader.end()
    }

    /// Reads a row and inserts it.
    fn row(&mut self, table: &Table, loading: &mut Loading<'_>) -> Result<()> {
        let mut values: Vec<Option<Value>> = vec![None; table.fields.len()];
        let mut id = None;
        let mut items = self.reader.open(b'{')?;
        while self.reader.next_key(&mut items, &mut self.key)? {
            if self.key == "id" {
                self.reader.scalar(&mut self.text)?;
                let row = language::row_id(&self.text).map_err(|error| self.reader.at(error))?;
                id = self.once(id, row)?;
                continue;
            }
            let place =
                table.fields.iter().position(|field| annals_json::key(table, field) == self.key);
            let Some((field, place)) =
                place.and_then(|place| table.fields.get(place).zip(Some(place)))
            else {
                let names = table.fields.iter().map(|field| field.name.as_str());
                let known = language::those("fields", names);
                let (table, key) = (&table.name, &self.key);
                return Err(self
                    .reader
                    .wrong(format_args!("table {table} has no field {key:?}; {known}")));
            };
            let value = self.value(table, field, loading)?;
            if let Some(slot) = values.get_mut(place) {
                let before = slot.take();
                *slot = self.once(before, value)?;
            }
        }
        let fields = table.fields.iter().zip(values);
        let values: Vec<Value> =
            fields.map(|(field, value)| value.unwrap_or_else(|| field.default_value())).collect();
        loading.insert(table.number, id, &values).map_err(|error| self.reader.at(error))?;
        let count = self.header.counts.iter_mut().find(|count| count.table == table.number);
        count.into_iter().for_each(|count| count.came += 1);
        Ok(())
    }

    fn once<T>(&self, before: Option<T>, value: T) -> Result<Option<T>> {
        match before {
            None => Ok(Some(value)),
            Some(_) => Err(twice(self.reader, &self.key)),
        }
    }

    /// Reads the value of a field.
    fn value(&mut self, table: &Table, field: &Field, loading: &mut Loading<'_>) -> Result<Value> {
        if field.ty == Type::Blob && self.reader.peek()? == Some(b'"') {
            let stream = self.reader.stream()?;
            let decoded = base64::read::DecoderReader::new(stream, &BASE64_STANDARD);
            let blob = loading.write_blob(decoded);
            return blob.map(Value::Blob).map_err(|error| self.reader.at(error));
        }
        let token = match self.reader.peek()? {
            Some(b'[' | b'{') => None,
            _ => Some(self.reader.scalar(&mut self.text)?),
        };
        let value = token.and_then(|token| typed(field.ty, token, &self.text));
        match value {
            Some(value) if field.accepts(value.as_ref()) => Ok(value),
            Some(Value::Null) if loading.is_erased(table, field) => Ok(Value::Null),
            _ => {
                let shown = match token {
                    None => "an array or object".to_owned(),
                    Some(Token::Null) => "null".to_owned(),
                    Some(Token::Bool(value)) => value.to_string(),
                    Some(Token::Number) => self.text.clone(),
                    Some(Token::String) => format!("{:?}", self.text),
                };
                let (ty, field, table) = (field.ty, &field.name, &table.name);
                let message =
                    format!("field {field} of table {table}: {shown} is no value of type {ty}");
                Err(self.reader.wrong(message))
            }
        }
    }
}

/// Returns the value of a token for a type. Bytes are in base64, so that a file of them is small.
fn typed(ty: Type, token: Token, text: &str) -> Option<Value> {
    if token == Token::String && ty.is_variable() && !ty.is_text() {
        return BASE64_STANDARD.decode(text).ok().map(Value::Bytes);
    }
    let scalar = match token {
        Token::Null => Scalar::Null,
        Token::Bool(value) => Scalar::Bool(value),
        Token::Number => Scalar::Number(text),
        Token::String => Scalar::String(text),
    };
    annals_json::parse_value(ty, scalar)
}
