//! Whole schema files, one or several.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::expect::Line;
use super::fate::{Fates, Name, Place};
use super::joedb::{self, Kind};
use super::scope::{About, Mistake, Scope};
use super::{COMMANDS, Parsed, command, elsewhere};
use crate::diagnostics::nearest;
use crate::{Command, Diagnostic, FieldNumber, Schema, TableNumber, Token, shorten, tokenize};

/// The contents of a schema file, or of several that were read as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaFile {
    /// The namespace it asks for: names joined by `::`.
    pub namespace: Option<String>,
    /// The schema.
    pub schema: Schema,
    /// The paths of the Rust types after `as`, for the generator of code. They are no part of the schema.
    pub types: BTreeMap<(TableNumber, FieldNumber), String>,
    /// The lines that would change rows, as scripts of joedb have them: they did nothing.
    pub ignored: Vec<Ignored>,
}

/// A line of a schema file that did nothing, because a schema holds no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The file's name, as given; empty for [`parse`].
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Its command.
    pub command: String,
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
    parse_files(&[("", text)])
}

/// Parses several files as one schema, in this order: names and texts. So joedb's schema
/// (`.joedbi`) and its compiler's options (`.joedbc`) belong together.
///
/// ```
/// let file = annals_schema::parse_files(&[
///     ("a.joedbi", "create_table city\nadd_field city name string"),
///     ("a.joedbc", "namespace a\ncreate_index city_by_name city name"),
/// ]);
/// assert_eq!(file.unwrap().schema.indexes()[0].name, "city_by_name");
/// ```
///
/// # Errors
/// All mistakes of all files, in order; each has the name of its file.
pub fn parse_files(files: &[(&str, &str)]) -> Result<SchemaFile, Vec<Diagnostic>> {
    let mut parser = Parser::default();
    for (name, text) in files {
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            parser.line(&Place { file: (*name).to_owned(), line: number }, line);
        }
    }
    if parser.mistakes.is_empty() { Ok(parser.file) } else { Err(parser.mistakes) }
}

#[derive(Default)]
struct Parser {
    file: SchemaFile,
    fates: Fates,
    /// Names that wrong lines would have defined.
    lost: HashSet<String>,
    /// Names that wrong lines would have freed.
    kept: HashSet<String>,
    mistakes: Vec<Diagnostic>,
    /// The mistakes that are about names which no line has defined yet.
    wanted: HashMap<Name, Vec<usize>>,
}

impl Parser {
    fn line(&mut self, place: &Place, line: &str) {
        let mistake = match tokenize(line) {
            Ok(tokens) => {
                let Err(mistake) = self.command(place, &tokens) else { return };
                let follows = match &mistake.about {
                    About::Nothing => false,
                    About::Missing { name, .. } => self.lost.contains(name.text()),
                    About::Present(name) => self.kept.contains(name),
                };
                self.lose(&tokens);
                if follows {
                    return;
                }
                if let About::Missing { name, is_new: true } = mistake.about {
                    self.wanted.entry(name).or_default().push(self.mistakes.len());
                }
                *mistake.diagnostic
            }
            Err(error) => {
                self.lost.extend(line.split_whitespace().map(str::to_owned));
                self.kept.extend(line.split_whitespace().map(str::to_owned));
                Diagnostic::lexical(error, line)
            }
        };
        self.mistakes.push(mistake.at(place.line, line).of(&place.file));
    }

    fn command(&mut self, place: &Place, tokens: &[Token<'_>]) -> Result<(), Mistake> {
        let Some(first) = tokens.first() else {
            return Ok(());
        };
        if first.is("namespace") {
            return Ok(self.namespace(tokens)?);
        }
        let scope = Scope::new(&self.file.schema, &self.fates).in_file(&place.file);
        if let Some(Parsed { command, rust_type }) = command(&scope, tokens)? {
            self.fates.note(&self.file.schema, &command, Some(place));
            self.found(&command, place);
            let name = match &command {
                Command::AddField { table, name, .. } => Some((*table, name.clone())),
                _ => None,
            };
            let applied = self.file.schema.apply(command);
            applied.map_err(|error| Diagnostic::new(first, error.to_string()))?;
            self.typed(name, rust_type);
            return Ok(());
        }
        match joedb::take(&scope, tokens)? {
            Some(Kind::Silent) => Ok(()),
            Some(Kind::Data) => {
                let Place { file, line } = place.clone();
                let command = first.text.clone().into_owned();
                self.file.ignored.push(Ignored { file, line, command });
                Ok(())
            }
            None => Err(unknown(first, tokens.get(1)).into()),
        }
    }

    /// Remembers the Rust type of a field that was added.
    fn typed(&mut self, field: Option<(TableNumber, String)>, rust_type: Option<String>) {
        let (Some((table, name)), Some(path)) = (field, rust_type) else { return };
        let added = self.file.schema.table(table).and_then(|table| table.field_named(&name));
        if let Some(field) = added.map(|field| field.number) {
            self.file.types.insert((table, field), path);
        }
    }

    /// Mends the hints of the lines above that need the name which this line defines.
    fn found(&mut self, command: &Command, place: &Place) {
        if self.wanted.is_empty() {
            return;
        }
        let Some((name, how)) = Name::defined_by(command) else { return };
        for number in self.wanted.remove(&name).unwrap_or_default() {
            let Some(mistake) = self.mistakes.get_mut(number) else { continue };
            let (what, text) = (name.what(), name.text());
            let line = place.seen_from(&mistake.file);
            mistake.hint = Some(format!(
                "{what} `{text}` is {how} {line}, below: move this line after that one"
            ));
        }
    }

    fn namespace(&mut self, tokens: &[Token<'_>]) -> Result<(), Diagnostic> {
        let line = Line::new(tokens, "namespace NAME");
        let name = line.word(1, "the name")?;
        line.end(2)?;
        if self.file.namespace.is_some() {
            return Err(Diagnostic::new(name, "there is a namespace already")
                .hint("keep one of them; namespaces nest as `a::b`"));
        }
        for part in name.text.split("::") {
            // A schema checks the names of its tables just so.
            Schema::default()
                .apply(Command::CreateTable { name: part.to_owned() })
                .map_err(|error| Diagnostic::new(name, error.to_string()))?;
        }
        self.file.namespace = Some(name.text.clone().into_owned());
        Ok(())
    }

    /// Remembers the names that a wrong line would have defined or freed.
    fn lose(&mut self, tokens: &[Token<'_>]) {
        let Some(first) = tokens.first() else { return };
        let word = |place: usize| tokens.get(place).map(|token| token.text.clone().into_owned());
        // The purpose of a misspelt command is known if the suggestion is unique.
        let verb = match first.text.as_ref() {
            verb if COMMANDS.contains(&verb) => verb,
            other => elsewhere::find(elsewhere::COMMANDS, other)
                .or_else(|| nearest(other, COMMANDS.into_iter()))
                .unwrap_or(other),
        };
        let (defines, frees) = match verb {
            "create_table" => (word(1), None),
            "add_field" => (word(2), None),
            "rename_table" => (word(2), word(1)),
            "rename_field" => (word(3), word(2)),
            "drop_table" | "drop_index" => (None, word(1)),
            "drop_field" => (None, word(2)),
            verb if verb.starts_with("create_") && verb.ends_with("index") => (word(1), None),
            verb if COMMANDS.contains(&verb) => (None, None),
            _ => {
                let all = || tokens.iter().map(|token| token.text.clone().into_owned());
                self.lost.extend(all());
                self.kept.extend(all());
                return;
            }
        };
        self.lost.extend(defines);
        self.kept.extend(frees);
    }
}

/// Returns the error for a word that is no command; SQL's commands have another word after it.
fn unknown(first: &Token<'_>, second: Option<&Token<'_>>) -> Diagnostic {
    let text = first.text.as_ref();
    let joined = second.map(|second| format!("{text}_{}", second.text).to_ascii_lowercase());
    let of_sql = joined.as_deref().and_then(|joined| {
        let same = COMMANDS.into_iter().find(|command| *command == joined);
        same.or_else(|| elsewhere::find(elsewhere::COMMANDS, joined))
    });
    let hint = if let Some(known) = of_sql {
        format!("a schema has its own commands, not those of SQL: write `{known}`")
    } else if let Some(known) = elsewhere::find(elsewhere::COMMANDS, text) {
        format!("write `{known}`")
    } else if let Some(near) = nearest(text, COMMANDS.into_iter()) {
        format!("did you mean `{near}`?")
    } else {
        format!("there is `{}`", COMMANDS.join("`, `"))
    };
    Diagnostic::new(first, format!("there is no command `{}`", shorten(text))).hint(hint)
}
