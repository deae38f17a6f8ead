//! The functions that an upgrade runs: the parameter of the program, and for each function the typed API of the
//! schema at its line.
//!
//! A function that is written once must stay right for ever, whatever becomes of the schema afterwards. So it sees
//! tables and fields under the names, and with the types, that they have at its place. A table that is the same today
//! isn't generated again: its module is used.

use std::collections::HashSet;

use super::names::{Names, Scope};
use super::table::At;
use super::table::accessors;
use super::{block, indent, join};
use annals_schema::{Command, Schema, SchemaFile, TableNumber, Type};

/// The common part of the modules of functions.
const TRANSACTION: &str = include_str!("custom.rs.in");

/// The functions of a schema, in order.
pub(super) struct Customs {
    functions: Vec<Custom>,
}

struct Custom {
    /// Its name in the schema.
    text: String,
    /// Its name in Rust: a field of `Customs`, and a module.
    name: String,
    /// The tables at its place.
    schema: Schema,
}

impl Customs {
    pub(super) fn new(schema: &Schema) -> Self {
        let name = |command: &Command| match command {
            Command::Custom { name } => Some(name.clone()),
            _ => None,
        };
        let texts: Vec<_> = schema.commands().iter().filter_map(name).collect();
        let mut scope = Scope::new(&[], texts.iter().map(String::as_str));
        let (mut at, mut functions) = (Schema::default(), Vec::new());
        // Indexes and single rows are upgraded last.
        for command in schema.commands().iter().filter(|command| command.is_ordered()) {
            if at.apply(command.clone()).is_ok()
                && let Some(text) = name(command)
            {
                let name = scope.declare_numbered(&text);
                functions.push(Custom { text, name, schema: at.clone() });
            }
        }
        Self { functions }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the type that represents the schema, as the module of a table sees it.
    pub(super) fn marker(&self) -> &'static str {
        match self.is_empty() {
            true => "super::Schema",
            false => "::annals::typed::WithCustoms<super::Schema>",
        }
    }

    /// Generates the struct that holds the program's functions.
    pub(super) fn parameter(&self) -> String {
        let fields = self.functions.iter().map(|custom| {
            let (text, name) = (&custom.text, &custom.name);
            format!(
                "    /// What happens at `custom {text}`: see [`custom::{name}`].\n    \
                 pub {name}: custom::{name}::Function<'f>,\n"
            )
        });
        let arms = self.functions.iter().enumerate().map(|(number, custom)| {
            let name = &custom.name;
            format!(
                "            {number} => {{\n                \
                 let mut tables = custom::{name}::new(transaction);\n                \
                 (customs.{name})(&mut tables)\n            }}\n"
            )
        });
        let (fields, arms) = (fields.collect::<String>(), arms.collect::<String>());
        format!(
            "\
/// What the program does at each `custom` of the schema, when opening upgrades a file that is
/// older. A function that fails leaves the file as it was.
#[must_use]
pub struct Customs<'f> {{
{fields}}}

impl ::annals::typed::CustomSchema for Schema {{
    type Customs<'f> = Customs<'f>;

    fn run(
        customs: &mut Customs<'_>,
        custom: ::annals::Custom<'_>,
        transaction: &mut ::annals::Transaction<'_>,
    ) -> ::annals::Result<()> {{
        match custom.number {{
{arms}            _ => ::annals::typed::unknown_custom(custom),
        }}
    }}
}}

impl ::std::fmt::Debug for Customs<'_> {{
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {{
        f.debug_struct(\"Customs\").finish_non_exhaustive()
    }}
}}
"
        )
    }

    /// Writes the modules of the functions; nothing if there are none.
    pub(super) fn modules(&self, now: &SchemaFile, names: &Names) -> String {
        if self.is_empty() {
            return String::new();
        }
        let modules: Vec<_> =
            self.functions.iter().map(|custom| custom.module(now, names)).collect();
        format!(
            "\n/// The schema as it is at each `custom`, for the function of that name.\n\
             pub mod custom {{\n{}}}\n",
            indent(&join(&modules))
        )
    }
}

impl Custom {
    fn module(&self, now: &SchemaFile, names_now: &Names) -> String {
        let names = Names::new(&self.schema, &now.types);
        let same = same_tables(&self.schema, &now.schema);
        let mut items = Vec::new();
        for (table, names_of_table) in self.schema.tables().iter().zip(&names.tables) {
            let today = names_now.table(table.number).map(|names| names.name.as_str());
            items.push(match today {
                Some(today) if same.contains(&table.number) => {
                    let name = &names_of_table.name;
                    let renamed = if today == name { String::new() } else { format!(" as {name}") };
                    format!("pub use super::super::{today}{renamed};\n")
                }
                _ => At { schema: &self.schema, names: &names, marker: "()" }
                    .module(table, names_of_table),
            });
        }
        items.push(TRANSACTION.to_owned());
        let accessors = accessors(&self.schema, &names, "self.0.dynamic_view()");
        if !accessors.is_empty() {
            items.push(block("impl Transaction<'_, '_>", &accessors));
        }
        format!(
            "/// The tables as they are at `custom {}`.\npub mod {} {{\n{}}}\n",
            self.text,
            self.name,
            indent(&join(&items))
        )
    }
}

/// Returns the tables whose modules of today serve at another place of the schema too: those with the
/// same fields, which refer to such tables only.
fn same_tables(at: &Schema, now: &Schema) -> HashSet<TableNumber> {
    let mut same: HashSet<_> = at
        .tables()
        .iter()
        .filter(|table| {
            let today = now.table(table.number);
            today.is_some_and(|today| !today.single_row && today.fields == table.fields)
        })
        .map(|table| table.number)
        .collect();
    loop {
        let differs = |number: &TableNumber| {
            let fields = at.table(*number).map(|table| table.fields.as_slice());
            fields.unwrap_or_default().iter().any(|field| match field.ty {
                // To a table that was dropped before, both have plain numbers.
                Type::Reference(to, _) => at.table(to).is_some() && !same.contains(&to),
                _ => false,
            })
        };
        let Some(other) = same.iter().copied().find(differs) else { return same };
        same.remove(&other);
    }
}
