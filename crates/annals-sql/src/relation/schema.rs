//! `annals_schema`: tables, fields and indexes.

use std::sync::Arc;

use annals::Snapshot;

use crate::forms::form;
use crate::host::{Answer, Asked, Fault, Form, Relation, Scan};
use crate::relation::listed::{Listed, Picked, Record, Records};
use crate::relation::refusal;
use crate::session::{Session, Sight};

/// The schema.
pub(super) struct Definitions {
    session: Arc<Session>,
}

impl Definitions {
    pub(super) const fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

impl Relation for Definitions {
    fn declaration(&self) -> &str {
        "CREATE TABLE x(\"kind\" TEXT, \"table\" TEXT, \"name\" TEXT, \"type\" TEXT, \"nullable\" BOOLEAN, \
         \"default\", \"references\" TEXT, \"unique\" BOOLEAN, \"rows\" INTEGER)"
    }

    fn plan(&self, _: &Asked) -> Result<Answer, Fault> {
        Ok(Answer { cost: 100.0, rows: 100, text: "all".to_owned(), ..Answer::default() })
    }

    fn open(&self, is_alone: bool) -> Result<Box<dyn Scan>, Fault> {
        let sight = self.session.enter(is_alone)?;
        Ok(Box::new(Listed::new(sight, None, 0, Box::new(begin))))
    }

    fn refusal(&self) -> Fault {
        refusal("annals_schema")
    }
}

fn text(text: impl Into<String>) -> Form<'static> {
    Form::Text(text.into().into())
}

fn begin(sight: &Sight, _: &Picked<'_, '_>) -> Result<Records, Fault> {
    let records = records(&sight.snapshot)?;
    Ok(Box::new((1..).zip(records).map(|(id, forms)| Ok(Record::new(id, forms)))))
}

fn records(now: &Snapshot) -> Result<Vec<Vec<Form<'static>>>, Fault> {
    let (schema, mut all) = (now.schema(), Vec::new());
    let nothing = || Form::Null;
    for table in schema.tables() {
        let rows = now.table(table.number)?.len();
        let rows = Form::Integer(rows.cast_signed());
        let own = [text("table"), text(&table.name), text(&table.name)];
        let rest = [nothing(), nothing(), nothing(), nothing(), nothing(), rows];
        all.push(own.into_iter().chain(rest).collect());
        for field in &table.fields {
            let default = match &field.default {
                Some(default) => form(default.as_ref(), now)?.into_owned(),
                None => nothing(),
            };
            let to = match field.ty {
                annals::Type::Reference(to, _) => schema.table(to).map(|to| text(&to.name)),
                _ => None,
            };
            all.push(vec![
                text("field"),
                text(&table.name),
                text(&field.name),
                text(field.ty.to_string()),
                Form::Integer(field.nullable.into()),
                default,
                to.unwrap_or(Form::Null),
                nothing(),
                nothing(),
            ]);
        }
        for index in schema.indexes().iter().filter(|index| index.table == table.number) {
            let name = |number| table.field(number).map(|field| field.name.as_str());
            let fields: Vec<_> = index.fields.iter().filter_map(|&number| name(number)).collect();
            let own = [text("index"), text(&table.name), text(&index.name), text(fields.join(","))];
            let unique = Form::Integer(index.unique.into());
            let rest = [nothing(), nothing(), nothing(), unique, nothing()];
            all.push(own.into_iter().chain(rest).collect());
        }
    }
    Ok(all)
}
