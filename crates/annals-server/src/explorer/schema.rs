//! What tables are made of, now and after each transaction.

use std::sync::Arc;

use annals::event::Event;
use annals::{Committed, Error, ErrorKind, Index, Schema, Sink, Table, Txid, Type};
use annals_replica::Local;
use axum::extract::Path;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::forgotten::forgotten;
use crate::means::Kind;
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(schema_after))
}

/// The schema after a transaction.
#[derive(Serialize, ToSchema)]
struct SchemaAfter {
    txid: u64,
    tables: Vec<Shape>,
}

/// What a table is made of.
#[derive(Serialize, ToSchema)]
pub(super) struct Shape {
    /// Its number, which stays when it is renamed.
    number: u32,
    name: String,
    fields: Vec<OfField>,
    indexes: Vec<OfIndex>,
}

/// A field.
#[derive(Serialize, ToSchema)]
struct OfField {
    /// Its number in the table, which stays when it is renamed.
    number: u32,
    /// The key of its values in rows: its name, or `TABLE.id` if that is `id`.
    key: String,
    /// The word of the schema language for its type, with its parameter.
    r#type: String,
    is_nullable: bool,
    /// The table to whose rows it refers.
    references: Option<String>,
}

/// An index.
#[derive(Serialize, ToSchema)]
struct OfIndex {
    name: String,
    /// The keys of its fields.
    fields: Vec<String>,
    /// Those of them that are in descending order.
    descending: Vec<String>,
    is_unique: bool,
}

/// Returns the tables, fields and indexes that there were after a transaction. Numbers lead to those of other moments.
#[utoipa::path(get, path = "/v1/{name}/schema/{txid}", responses((status = 200, body = SchemaAfter)))]
async fn schema_after(allowed: Allowed, Path((_, txid)): Path<(String, u64)>) -> Answer {
    let local = Arc::clone(&allowed.local);
    let read = move |_: &mut Work| {
        let schema = schema_of(&local, Txid(txid))?;
        let tables = schema.tables().iter().map(|table| shape(&schema, table)).collect();
        Ok(SchemaAfter { txid, tables })
    };
    allowed.value(Kind::Long, read).await
}

/// Returns the schema after a transaction: it is the one before the next event, which is where reading stops.
fn schema_of(local: &Local, txid: Txid) -> Answer<Schema> {
    let now = now(local)?;
    if txid > now.txid() {
        let message = format!("there is no transaction {txid} yet: the last one is {}", now.txid());
        return Err(Refusal::not_found(message));
    }
    let mut before = Before(None);
    let read = now.read_events(txid, now.txid(), &mut before);
    match (before.0, read) {
        (Some(schema), _) => Ok(schema),
        (None, Ok(())) => Ok(Schema::clone(now.schema())),
        (None, Err(error)) => Err(forgotten(local, error)),
    }
}

/// Takes the schema before the first event.
struct Before(Option<Schema>);

impl Before {
    fn take(&mut self, schema: &Schema) -> annals::Result<()> {
        self.0 = Some(schema.clone());
        Err(Error::new(ErrorKind::Closed, "the schema is known"))
    }
}

impl Sink for Before {
    fn event(&mut self, schema: &Schema, _: &Event<'_>) -> annals::Result<()> {
        self.take(schema)
    }

    fn commit(&mut self, schema: &Schema, _: &Committed) -> annals::Result<()> {
        self.take(schema)
    }
}

/// Returns what a table is made of.
pub(super) fn shape(schema: &Schema, table: &Table) -> Shape {
    let indexes = schema.indexes().iter().filter(|index| index.table == table.number);
    let references = |ty| match ty {
        Type::Reference(to, _) => schema.table(to).map(|to| to.name.clone()),
        _ => None,
    };
    let of_field = |field: &annals::Field| OfField {
        number: field.number.0,
        key: annals_json::key(table, field),
        r#type: field.ty.to_string(),
        is_nullable: field.nullable,
        references: references(field.ty),
    };
    Shape {
        number: table.number.0,
        name: table.name.clone(),
        fields: table.fields.iter().map(of_field).collect(),
        indexes: indexes.map(|index| of_index(table, index)).collect(),
    }
}

fn of_index(table: &Table, index: &Index) -> OfIndex {
    let keys = |numbers: &[annals::FieldNumber]| {
        let fields = numbers.iter().filter_map(|number| table.field(*number));
        fields.map(|field| annals_json::key(table, field)).collect()
    };
    OfIndex {
        name: index.name.clone(),
        fields: keys(&index.fields),
        descending: keys(&index.descending),
        is_unique: index.unique,
    }
}
