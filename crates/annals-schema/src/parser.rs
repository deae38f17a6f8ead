//! The parser of schema text.
//!
//! A mistake never hides another: a line that is wrong is reported and left out, and names that it
//! would have defined are remembered, so that the lines that use them aren't reported too.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::diagnostics::{nearest, suggest};
use crate::{
    Command, Diagnostic, Field, FieldNumber, OnDelete, Schema, SchemaError, Table, Token, Type,
    Value, parse_value, tokenize,
};

const CREATE_TABLE: &str = "create_table NAME";
const ADD_FIELD: &str = "add_field TABLE NAME TYPE [null] [default VALUE]";
const NAMESPACE: &str = "namespace NAME";
/// The commands of the schema language, `namespace` included.
pub const COMMANDS: [&str; 5] =
    ["create_table", "add_field", "create_index", "create_unique_index", "namespace"];

/// What a schema file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaFile {
    /// The namespace it asks for: names joined by `::`.
    pub namespace: Option<String>,
    /// The schema.
    pub schema: Schema,
}

/// Parses the text of a schema file.
///
/// ```
/// let file = annals_schema::parse("create_table city\nadd_field city name string").unwrap();
/// assert_eq!(file.schema.tables()[0].fields[0].name, "name");
/// ```
///
/// # Errors
/// All mistakes of the file, in the order of its lines.
pub fn parse(text: &str) -> Result<SchemaFile, Vec<Diagnostic>> {
    let mut file = SchemaFile::default();
    let mut diagnostics = Vec::new();
    let mut lost = HashSet::new();
    for (place, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let mistake = match tokenize(line) {
            Ok(tokens) => match parse_line(&mut file, &tokens) {
                Ok(()) => continue,
                Err(mistake) => {
                    let follows = mistake.is_about_name && lost.contains(&mistake.diagnostic.text);
                    lost.extend(lost_names(&tokens));
                    if follows {
                        continue;
                    }
                    *mistake.diagnostic
                }
            },
            Err(error) => {
                lost.extend(line.split_whitespace().map(str::to_owned));
                Diagnostic::lexical(error, line)
            }
        };
        diagnostics.push(mistake.at(place + 1, line));
    }
    if diagnostics.is_empty() { Ok(file) } else { Err(diagnostics) }
}

/// Parses one command of the schema language, already split into tokens; `None` if the first token
/// is no command of it, or there is no token. `namespace` is for files only, and is none here.
///
/// # Errors
/// The first mistake of the line. Its [`line`](Diagnostic::at) is for the caller to say.
pub fn parse_command(schema: &Schema, tokens: &[Token<'_>]) -> Result<Option<Command>, Diagnostic> {
    command(schema, tokens).map_err(|mistake| *mistake.diagnostic)
}

/// A diagnostic, and whether it says that a table or field isn't there.
struct Mistake {
    diagnostic: Box<Diagnostic>,
    is_about_name: bool,
}

impl From<Diagnostic> for Mistake {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), is_about_name: false }
    }
}

/// The names that a wrong line would have defined.
fn lost_names(tokens: &[Token<'_>]) -> Vec<String> {
    let text = |token: &Token<'_>| token.text.clone().into_owned();
    match tokens {
        [first, name, ..] if first.is("create_table") => vec![text(name)],
        [first, _, name, ..] if first.is("add_field") => vec![text(name)],
        [first, ..] if COMMANDS.iter().any(|command| first.is(command)) => Vec::new(),
        _ => tokens.iter().map(text).collect(),
    }
}

fn parse_line(file: &mut SchemaFile, tokens: &[Token<'_>]) -> Result<(), Mistake> {
    let Some(first) = tokens.first() else {
        return Ok(());
    };
    if first.is("namespace") {
        return Ok(namespace(file, tokens)?);
    }
    let Some(command) = command(&file.schema, tokens)? else {
        let text = first.text.as_ref();
        let hint = match nearest(text, COMMANDS.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is `{}`", COMMANDS.join("`, `")),
        };
        return Err(Diagnostic::new(first, format!("there is no command `{text}`"))
            .hint(hint)
            .into());
    };
    file.schema
        .apply(command)
        .map_err(|error| Mistake::from(Diagnostic::new(first, error.to_string())))
}

fn namespace(file: &mut SchemaFile, tokens: &[Token<'_>]) -> Result<(), Diagnostic> {
    let name = tokens.get(1).ok_or_else(|| missing(tokens, "the name", NAMESPACE))?;
    end(tokens, 2, NAMESPACE)?;
    if file.namespace.is_some() {
        return Err(Diagnostic::new(name, "there is a namespace already")
            .hint("keep one of them; namespaces nest as `a::b`"));
    }
    for part in name.text.split("::") {
        // A schema checks the names of its tables just so.
        Schema::default()
            .apply(Command::CreateTable { name: part.to_owned() })
            .map_err(|error| Diagnostic::new(name, error.to_string()))?;
    }
    file.namespace = Some(name.text.clone().into_owned());
    Ok(())
}

fn command(schema: &Schema, tokens: &[Token<'_>]) -> Result<Option<Command>, Mistake> {
    let Some(first) = tokens.first().filter(|first| !first.quoted) else {
        return Ok(None);
    };
    match first.text.as_ref() {
        "create_table" => Ok(Some(create_table(schema, tokens)?)),
        "add_field" => add_field(schema, tokens).map(Some),
        "create_index" => create_index(schema, tokens, false).map(Some),
        "create_unique_index" => create_index(schema, tokens, true).map(Some),
        _ => Ok(None),
    }
}

fn create_table(schema: &Schema, tokens: &[Token<'_>]) -> Result<Command, Diagnostic> {
    let name = tokens.get(1).ok_or_else(|| missing(tokens, "the table's name", CREATE_TABLE))?;
    end(tokens, 2, CREATE_TABLE)?;
    try_out(schema, Command::CreateTable { name: name.text.clone().into_owned() }, name)
}

fn add_field(schema: &Schema, tokens: &[Token<'_>]) -> Result<Command, Mistake> {
    let miss = |what| missing(tokens, what, ADD_FIELD);
    let table = find_table(schema, tokens.get(1).ok_or_else(|| miss("the table's name"))?)?;
    let name = tokens.get(2).ok_or_else(|| miss("the field's name"))?;
    let word = tokens.get(3).ok_or_else(|| miss("the field's type"))?;
    let (ty, rest) = if word.is("references") {
        let target = tokens.get(4).ok_or_else(|| miss("the table that it references"))?;
        let target = find_table(schema, target)?.number;
        let rule = tokens.get(5).filter(|word| !word.quoted);
        match rule.and_then(|word| OnDelete::named(&word.text)) {
            Some(rule) => (Type::Reference(target, rule), tokens.get(6..)),
            None => (Type::Reference(target, OnDelete::Dangle), tokens.get(5..)),
        }
    } else {
        (find_type(schema, word)?, tokens.get(4..))
    };
    let options = field_options(ty, rest.unwrap_or(&[]))?;
    let command = Command::AddField {
        table: table.number,
        name: name.text.clone().into_owned(),
        ty,
        nullable: options.nullable,
        default: options.default,
    };
    Ok(try_out(schema, command, name)?)
}

struct FieldOptions {
    nullable: bool,
    default: Option<Value>,
}

/// Reads `null` and `default VALUE` (or `= VALUE`), in either order.
fn field_options(ty: Type, tokens: &[Token<'_>]) -> Result<FieldOptions, Diagnostic> {
    let nullable = ty.is_always_nullable();
    let mut options = FieldOptions { nullable, default: None };
    let mut default_at = None;
    let mut rest = tokens;
    while let [first, after @ ..] = rest {
        rest = after;
        if first.is("null") {
            options.nullable = true;
            continue;
        }
        let glued = first.text.strip_prefix('=').filter(|text| !first.quoted && !text.is_empty());
        let value = match (glued, after) {
            (Some(text), _) => Cow::Owned(behind_equals(first, text)),
            (None, [value, after @ ..]) if first.is("=") || first.is("default") => {
                rest = after;
                Cow::Borrowed(value)
            }
            (None, []) if first.is("=") || first.is("default") => {
                return Err(missing(tokens, "the default", ADD_FIELD));
            }
            _ => return Err(unexpected(first, ADD_FIELD)),
        };
        if options.default.is_some() {
            return Err(
                Diagnostic::new(first, "there is a default already").hint("keep one of them")
            );
        }
        options.default = Some(parse_value(ty, &value).map_err(|message| {
            let (what, hint) = message.split_once(": ").unwrap_or((message.as_str(), ""));
            Diagnostic::new(&value, what).hint(hint)
        })?);
        default_at = Some(value);
    }
    match (&options.default, default_at) {
        (Some(Value::Null), Some(token)) if !options.nullable => {
            Err(Diagnostic::new(&token, "the default is null, but the field can't be null")
                .hint("write `null` in front of the default, or give another default"))
        }
        _ => Ok(options),
    }
}

/// Gives the value of `=VALUE` as a token of its own.
fn behind_equals<'t>(token: &Token<'_>, text: &str) -> Token<'t> {
    Token {
        text: Cow::Owned(text.to_owned()),
        column: token.column + 1,
        length: token.length - 1,
        quoted: false,
    }
}

fn create_index(schema: &Schema, tokens: &[Token<'_>], unique: bool) -> Result<Command, Mistake> {
    let usage = if unique {
        "create_unique_index NAME TABLE FIELD[,FIELD..]"
    } else {
        "create_index NAME TABLE FIELD[,FIELD..]"
    };
    let miss = |what| missing(tokens, what, usage);
    let name = tokens.get(1).ok_or_else(|| miss("the index's name"))?;
    let table = find_table(schema, tokens.get(2).ok_or_else(|| miss("the table's name"))?)?;
    let names = split_at_commas(tokens.get(3..).unwrap_or(&[]));
    let mut fields = Vec::new();
    let mut expect_field = true;
    for token in &names {
        match (token.is(","), expect_field) {
            (false, true) => fields.push(find_field(table, token)?.number),
            (true, false) => {}
            _ => return Err(unexpected(token, usage).into()),
        }
        expect_field = !expect_field;
        if let Some(twice) = repeated(&fields) {
            let message = format!("the index has the field `{}` twice", twice_name(table, twice));
            return Err(Diagnostic::new(token, message).hint("name each field once").into());
        }
    }
    if expect_field {
        return Err(miss("a field").into());
    }
    let command = Command::CreateIndex {
        name: name.text.clone().into_owned(),
        table: table.number,
        fields,
        unique,
    };
    Ok(try_out(schema, command, name)?)
}

fn repeated(fields: &[FieldNumber]) -> Option<FieldNumber> {
    let (last, earlier) = fields.split_last()?;
    earlier.contains(last).then_some(*last)
}

fn twice_name(table: &Table, field: FieldNumber) -> &str {
    table.field(field).map_or("", |field| &field.name)
}

/// Makes names and commas tokens of their own: the language allows blanks around commas.
fn split_at_commas<'t>(tokens: &'t [Token<'_>]) -> Vec<Token<'t>> {
    let mut parts = Vec::new();
    for token in tokens {
        if token.quoted {
            parts.push(token.clone());
            continue;
        }
        let mut column = token.column;
        for part in token.text.split_inclusive(',') {
            let name = part.strip_suffix(',').unwrap_or(part);
            for text in [name, part.get(name.len()..).unwrap_or("")] {
                if !text.is_empty() {
                    let length = text.chars().count();
                    parts.push(Token { text: Cow::Borrowed(text), column, length, quoted: false });
                    column += length;
                }
            }
        }
    }
    parts
}

fn find_table<'s>(schema: &'s Schema, token: &Token<'_>) -> Result<&'s Table, Mistake> {
    schema.table_named(&token.text).ok_or_else(|| {
        let names = schema.tables().iter().map(|table| table.name.as_str());
        let diagnostic = Diagnostic::new(token, format!("there is no table `{}`", token.text))
            .hint(suggest(&token.text, "table", names));
        Mistake { diagnostic: Box::new(diagnostic), is_about_name: true }
    })
}

fn find_field<'s>(table: &'s Table, token: &Token<'_>) -> Result<&'s Field, Mistake> {
    table.field_named(&token.text).ok_or_else(|| {
        let names = table.fields.iter().map(|field| field.name.as_str());
        let message = format!("table `{}` has no field `{}`", table.name, token.text);
        let diagnostic = Diagnostic::new(token, message).hint(suggest(&token.text, "field", names));
        Mistake { diagnostic: Box::new(diagnostic), is_about_name: true }
    })
}

fn find_type(schema: &Schema, token: &Token<'_>) -> Result<Type, Diagnostic> {
    Type::named(&token.text).filter(|_| !token.quoted).ok_or_else(|| {
        let names = Type::PLAIN.iter().map(|ty| ty.name()).chain(["references"]);
        let hint = if schema.table_named(&token.text).is_some() {
            format!("to refer to a row of that table, write `references {}`", token.text)
        } else {
            suggest(&token.text, "type", names)
        };
        Diagnostic::new(token, format!("there is no type `{}`", token.text)).hint(hint)
    })
}

/// Checks what only the model can: names that are no names, or in use.
fn try_out(schema: &Schema, command: Command, name: &Token<'_>) -> Result<Command, Diagnostic> {
    schema.check(&command).map_err(|error| {
        let (message, hint) = match &error {
            SchemaError::NameInUse(_) => (error.to_string(), "choose another name"),
            SchemaError::BadName(bad) => (
                format!("`{bad}` is not a name"),
                "use a letter or `_`, then letters, digits and `_`, at most 255 in all",
            ),
            _ => (error.to_string(), "look at what the line says"),
        };
        Diagnostic::new(name, message).hint(hint)
    })?;
    Ok(command)
}

fn missing(tokens: &[Token<'_>], what: &str, usage: &str) -> Diagnostic {
    Diagnostic::missing(tokens, what, usage)
}

fn unexpected(token: &Token<'_>, usage: &str) -> Diagnostic {
    Diagnostic::new(token, format!("`{}` doesn't belong here", token.text))
        .hint(format!("write `{usage}`"))
}

/// Fails if there are more tokens than these.
fn end(tokens: &[Token<'_>], count: usize, usage: &str) -> Result<(), Diagnostic> {
    tokens.get(count).map_or(Ok(()), |extra| Err(unexpected(extra, usage)))
}
