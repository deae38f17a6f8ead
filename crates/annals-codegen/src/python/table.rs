//! The classes of a table: its rows, what is given to insert and update one, its indexes, and the table itself in
//! snapshots and in transactions.

use std::collections::HashSet;
use std::fmt::{Result, Write};

use annals_schema::{Field, Index, Schema, Table, Type};

use super::names::{self, Names, attribute, plain, short};
use super::types;

/// Generates the classes of a table.
pub(super) fn push(code: &mut String, schema: &Schema, names: &Names, table: &Table) -> Result {
    let row = names.row(table);
    push_row(code, names, table)?;
    push_given(code, names, table)?;
    let indexes: Vec<&Index> = schema.indexes_of(table).collect();
    for index in &indexes {
        push_index(code, names, table, index)?;
    }
    let name = &table.name;
    write!(
        code,
        "\n\nclass _{row}Indexes(_Protocol):\n    \"\"\"The indexes of table `{name}`.\"\"\"\n"
    )?;
    for index in &indexes {
        let short = attribute(short(table, index), names::OF_TABLE);
        if let Some(attribute) = short.or_else(|| attribute(&index.name, names::OF_TABLE)) {
            let class = names.index(index);
            write!(code, "\n    @_property\n    def {attribute}(self) -> {class}: ...\n")?;
        }
    }
    // A name that two indexes have means the first.
    let mut taken = HashSet::new();
    let named = indexes.iter().filter_map(|&index| {
        let both = [short(table, index), index.name.as_str()];
        let new: Vec<&str> = both.into_iter().filter(|&name| taken.insert(name)).collect();
        (!new.is_empty()).then(|| (types::literal(new), names.index(index)))
    });
    let named: Vec<(String, &str)> = named.collect();
    // Of one function there are no overloads.
    let overload = if named.len() > 1 { "    @_overload\n" } else { "" };
    for (name, class) in named {
        write!(code, "\n{overload}    def index(self, name: {name}) -> {class}: ...\n")?;
    }
    let class = names.table(table);
    write!(
        code,
        "\n\nclass {class}(_{row}Indexes, _typed.Table[{row}], _Protocol):\n    \
         \"\"\"Table `{name}` of a snapshot.\"\"\"\n"
    )?;
    let unique = indexes.iter().filter(|index| index.unique);
    let keys = types::literal(std::iter::once("id").chain(unique.map(|index| short(table, index))));
    let class = names.writable(table);
    write!(
        code,
        "\n\nclass {class}(_{row}Indexes, _typed.WritableTable[{row}, {row}Insert, {keys}], _Protocol):\n    \
         \"\"\"Table `{name}` of a transaction.\"\"\"\n\n    \
         def insert(self, /, **fields: _Unpack[{row}Insert]) -> _int: ...\n    \
         def update(self, id: _int, /, **fields: _Unpack[{row}Update]) -> None: ...\n    \
         def upsert(self, by: {keys}, /, **fields: _Unpack[{row}Insert]) -> _int: ...\n"
    )
}

fn push_row(code: &mut String, names: &Names, table: &Table) -> Result {
    let row = names.row(table);
    for field in &table.fields {
        if let (Type::Enum(variants), Some(name)) = (field.ty, names.variants(table, field)) {
            let all = types::literal(variants.iter().map(|variant| variant.name()));
            write!(code, "\n\n{name} = {all}\n")?;
        }
    }
    let has_id = table.fields.iter().any(|field| field.name == "id");
    let id = (!has_id).then_some("id");
    let all = types::literal(table.fields.iter().map(|field| field.name.as_str()).chain(id));
    write!(
        code,
        "\n\nclass {row}(_typed.Row[{all}], _Protocol):\n    \"\"\"A row of table `{}`.\"\"\"\n",
        table.name
    )?;
    for field in &table.fields {
        let name = given_name(table, field);
        if let Some(name) = attribute(&name, names::OF_ROW) {
            write!(
                code,
                "\n    @_property\n    def {name}(self) -> {}: ...\n",
                types::of(names, table, field)
            )?;
        }
    }
    Ok(())
}

/// Returns the name that a field has as an attribute and as a parameter; another field may have it.
fn given_name(table: &Table, field: &Field) -> String {
    let name = plain(&field.name);
    let is_other = name != field.name && table.fields.iter().any(|other| other.name == name);
    if is_other { field.name.clone() } else { name }
}

/// Generates the classes of what is given to insert a row, and to update it.
fn push_given(code: &mut String, names: &Names, table: &Table) -> Result {
    let row = names.row(table);
    write!(
        code,
        "\n\nclass {row}Insert(_TypedDict):\n    \"\"\"What inserts a row of table `{}`.\"\"\"\n\n",
        table.name
    )?;
    if !table.fields.iter().any(|field| field.name == "id") {
        code.push_str("    id: _NotRequired[_int]\n");
    }
    let given = table.fields.iter().filter_map(|field| {
        let name = given_name(table, field);
        Some((attribute(&name, &[])?.to_owned(), field))
    });
    let given: Vec<(String, &Field)> = given.collect();
    for (name, field) in &given {
        match types::has_default(field) {
            true => writeln!(code, "    {name}: _NotRequired[{}]", types::of(names, table, field))?,
            false => writeln!(code, "    {name}: {}", types::of(names, table, field))?,
        }
    }
    write!(
        code,
        "\n\nclass {row}Update(_TypedDict, total=False):\n    \
         \"\"\"What updates a row of table `{}`.\"\"\"\n{}",
        table.name,
        if given.is_empty() { "" } else { "\n" }
    )?;
    for (name, field) in &given {
        writeln!(code, "    {name}: {}", types::of(names, table, field))?;
    }
    Ok(())
}

/// Generates the class of an index, with the types of its fields.
fn push_index(code: &mut String, names: &Names, table: &Table, index: &Index) -> Result {
    let (row, class) = (names.row(table), names.index(index));
    let fields = index.fields.iter().filter_map(|&number| table.field(number));
    let fields: Vec<&Field> = fields.collect();
    let of: Vec<String> = fields.iter().map(|field| types::of(names, table, field)).collect();
    let mut parameter_names = vec!["self".to_owned()];
    for field in &fields {
        let mut name = plain(&field.name);
        while parameter_names.contains(&name) {
            name.push('_');
        }
        parameter_names.push(name);
    }
    // Those from a place on may be left out.
    let parameters = |count: usize, required: usize| {
        let pairs = parameter_names.iter().skip(1).zip(&of).take(count).enumerate();
        let all = pairs.map(|(place, (name, ty))| {
            let default = if place < required { "" } else { " = ..." };
            format!(", {name}: {ty}{default}")
        });
        all.collect::<String>()
    };
    let key = match of.as_slice() {
        [one] => one.clone(),
        several => format!("_tuple[{}]", several.join(", ")),
    };
    let count = fields.len();
    write!(
        code,
        "\n\nclass {class}(_typed.Index[{row}], _Protocol):\n    \"\"\"Index `{}`.\"\"\"\n\n    \
         def __getitem__(self, key: {key}, /) -> {row}: ...\n    \
         def get(self{}, /) -> {row} | None: ...\n    \
         def equal(self{}, /) -> _typed.Rows[{row}]: ...\n",
        index.name,
        parameters(count, count),
        parameters(count, 0),
    )?;
    let text = fields.iter().position(|field| matches!(field.ty, Type::String | Type::Bytes));
    if let Some(place) = text {
        let all = parameters(count, place + 1);
        writeln!(code, "    def prefix(self{all}, /) -> _typed.Rows[{row}]: ...")?;
    }
    let mut limits: Vec<&str> = Vec::new();
    for limit in of.iter().map(|ty| ty.trim_end_matches(" | None")).chain(["None"]) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let limit = limits.join(" | ");
    writeln!(
        code,
        "    def range(self{}, /, *, first: {limit} = None, end: {limit} = None) -> _typed.Rows[{row}]: ...",
        parameters(count.saturating_sub(1), 0)
    )
}
