//! Completions of a line: commands, tables, fields, types and words, from the command's form.

use annals::model::Variant;
use annals::{Field, Schema, Table, Type};
use annals_schema::Token;

use super::catalog;
use super::commands::COMMANDS;
use super::form::{self, Form, Slot};

/// The candidates for the end of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Where the word begins that would be replaced, in bytes.
    pub(crate) start: usize,
    /// The replacements, in the order of the schema, or of the table of commands.
    pub(crate) words: Vec<String>,
    /// True if a blank belongs after the word.
    pub(crate) ends_word: bool,
}

/// Finds the possible continuations of the line; `line` ends at the cursor.
pub(crate) fn complete(schema: &Schema, line: &str) -> Completion {
    let Some((before, begun)) = split(line) else { return Completion::default() };
    let place = Place { schema, before: &before };
    let slots = place.slots();
    let is_list = slots.contains(&Slot::Fields);
    // Of a list of fields only the last one is being written.
    let listed: Vec<&str> = begun.split(',').collect();
    let (begun, listed) = match listed.split_last() {
        Some((last, listed)) if is_list => (*last, listed),
        _ => (begun, [].as_slice()),
    };
    let mut words: Vec<String> = slots.into_iter().flat_map(|slot| place.words(slot)).collect();
    words.retain(|word| word.starts_with(begun) && !listed.contains(&word.as_str()));
    Completion { start: line.len() - begun.len(), words, ends_word: !is_list }
}

/// Returns the missing arguments after a command and its table, as its form or the fields' names.
pub(crate) fn hint(schema: &Schema, line: &str) -> Option<String> {
    let (before, "") = split(line)? else { return None };
    let (first, arguments) = before.split_first()?;
    let command = catalog::find(&first.text)?;
    let form = form::read(command.form);
    if arguments.is_empty() {
        return (!command.form.is_empty()).then(|| command.form.to_owned());
    }
    let place = form.required.iter().position(|&slot| slot == Slot::Values)?;
    if form.required.contains(&Slot::Field) {
        return None;
    }
    let place_of_table = form.required.iter().position(|&slot| slot == Slot::Table)?;
    let table = schema.table_named(&arguments.get(place_of_table)?.text)?;
    let names = table.fields.iter().map(|field| field.name.as_str());
    let left: Vec<&str> = names.skip(arguments.len().checked_sub(place)?).collect();
    (!left.is_empty()).then(|| left.join(" "))
}

/// Splits a line into its whole words and the beginning of the last one, which may be empty; `None`
/// inside quotes or a comment.
fn split(line: &str) -> Option<(Vec<Token<'_>>, &str)> {
    let mut tokens = annals_schema::tokenize(line).ok()?;
    if line.is_empty() || line.ends_with([' ', '\t']) {
        // A comment is no token, but it isn't blank.
        let end = tokens.last().map_or(0, end_of);
        return line.chars().skip(end).all(|c| c == ' ' || c == '\t').then_some((tokens, ""));
    }
    let last = tokens.pop()?;
    if last.quoted || end_of(&last) != line.chars().count() {
        return None;
    }
    let start = line.char_indices().nth(last.column - 1)?.0;
    Some((tokens, line.get(start..)?))
}

/// Returns where a word ends, in characters from 0.
const fn end_of(token: &Token<'_>) -> usize {
    token.column - 1 + token.length
}

/// The position of the next word in a line.
struct Place<'s> {
    schema: &'s Schema,
    /// The whole words before it.
    before: &'s [Token<'s>],
}

impl<'s> Place<'s> {
    /// Returns the possible next words.
    fn slots(&self) -> Vec<Slot> {
        let Some((first, arguments)) = self.before.split_first() else {
            return vec![Slot::Command];
        };
        let Some(command) = catalog::find(&first.text) else { return Vec::new() };
        let form = form::read(command.form);
        // The words after the type are part of it: its table, then the rule of deletion.
        match self.behind_references(&form, arguments) {
            Some(0) => return vec![Slot::Table],
            Some(1) => {
                return vec![Slot::Word(ON_DELETE), Slot::Word("required"), Slot::Word("default")];
            }
            _ => {}
        }
        if let Some(&slot) = form.required.get(arguments.len()) {
            return vec![slot];
        }
        if form.required.last() == Some(&Slot::Values) {
            return vec![Slot::Values];
        }
        optional(&form, arguments.get(form.required.len()..).unwrap_or_default())
    }

    /// Counts the words after the type `references`, if that is the type.
    fn behind_references(&self, form: &Form, arguments: &[Token<'_>]) -> Option<usize> {
        let place = form.required.iter().position(|&slot| slot == Slot::Type)?;
        arguments.get(place).filter(|word| word.is(REFERENCES))?;
        arguments.len().checked_sub(place + 1)
    }

    fn words(&self, slot: Slot) -> Vec<String> {
        let owned = |name: &str| name.to_owned();
        match slot {
            Slot::Table => self.schema.tables().iter().map(|table| table.name.clone()).collect(),
            Slot::Field | Slot::Fields => {
                let fields = self.table().map(|table| table.fields.as_slice()).unwrap_or_default();
                fields.iter().map(|field| field.name.clone()).collect()
            }
            Slot::Index => self.schema.indexes().iter().map(|index| index.name.clone()).collect(),
            Slot::Type => {
                let types = Type::PLAIN.into_iter().map(Type::name);
                types.chain([REFERENCES]).map(owned).collect()
            }
            Slot::Value | Slot::Values => {
                self.field(slot).map(values_of).unwrap_or_default().map(owned).collect()
            }
            Slot::Command => COMMANDS.iter().map(|command| owned(command.name)).collect(),
            Slot::Word(words) => words.split('|').map(owned).collect(),
            Slot::Free => Vec::new(),
        }
    }

    /// Returns the place of the form's first word of a kind, counted from the command's name.
    fn place_of(&self, slot: Slot) -> Option<usize> {
        let command = catalog::find(&self.before.first()?.text)?;
        Some(1 + form::read(command.form).required.iter().position(|&other| other == slot)?)
    }

    /// Returns the table that the line speaks of.
    fn table(&self) -> Option<&'s Table> {
        self.schema.table_named(&self.before.get(self.place_of(Slot::Table)?)?.text)
    }

    /// Returns the field whose value is next.
    fn field(&self, slot: Slot) -> Option<&'s Field> {
        let table = self.table()?;
        match slot {
            Slot::Values if self.place_of(Slot::Field).is_none() => {
                table.fields.get(self.before.len().checked_sub(self.place_of(Slot::Values)?)?)
            }
            _ => table.field_named(&self.before.get(self.place_of(Slot::Field)?)?.text),
        }
    }
}

const REFERENCES: &str = "references";
/// The rules of a reference when its row is deleted.
const ON_DELETE: &str = "restrict|cascade|set_null";

/// Returns the words that may follow the required ones, given those already typed.
fn optional(form: &Form, given: &[Token<'_>]) -> Vec<Slot> {
    let begins = |group: &[Slot], token: &Token<'_>| match group.first() {
        Some(Slot::Word(words)) => words.split('|').any(|word| token.is(word)),
        _ => false,
    };
    // Groups that begin with a word are known by it; others go by their place.
    if let Some(group) = form
        .optional
        .iter()
        .find(|group| group.len() > 1 && given.last().is_some_and(|last| begins(group, last)))
    {
        return group.get(1).copied().into_iter().collect();
    }
    let is_left = |(place, group): &(usize, &Vec<Slot>)| match group.first() {
        Some(Slot::Word(_)) => !given.iter().any(|token| begins(group, token)),
        _ => *place == given.len(),
    };
    let left = form.optional.iter().enumerate().filter(is_left);
    left.filter_map(|(_, group)| group.first().copied()).collect()
}

/// Returns the values of a field that are words.
fn values_of(field: &Field) -> std::vec::IntoIter<&'static str> {
    let null = field.nullable.then_some("null");
    let bools: &[&str] = if field.ty == Type::Bool { &["true", "false"] } else { &[] };
    let new = (field.ty == Type::Uuid).then_some("v7");
    let variants = if let Type::Enum(variants) = field.ty { Some(variants.iter()) } else { None };
    let variants = variants.into_iter().flatten().map(Variant::name);
    bools.iter().copied().chain(variants).chain(new).chain(null).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = "create_table author\nadd_field author name string\n\
                    add_field author alive bool\nadd_field author born int16 null\n\
                    create_table book\nadd_field book author references author\n\
                    create_index by_name author name";
        annals_schema::parse(text).unwrap().schema
    }

    /// Returns the words that the line can continue with, in one line.
    fn words(line: &str) -> String {
        complete(&schema(), line).words.join(" ")
    }

    #[test]
    fn each_place_has_its_words() {
        assert_eq!(words("ins"), "insert insert_at insert_into insert_vector");
        assert_eq!(words("soft"), "soft_checkpoint");
        assert_eq!(words("insert "), "author book");
        assert_eq!(words("insert a"), "author");
        assert_eq!(words("update author 5 "), "name alive born");
        assert_eq!(words("update author 5 b"), "born");
        assert_eq!(words("update author 5 alive "), "true false");
        assert_eq!(words("insert author \"x\" "), "true false");
        assert_eq!(words("insert author \"x\" true "), "null");
        assert_eq!(words("insert_at author 7 \"x\" "), "true false");
        assert_eq!(words("create_index by_name "), "author book");
        assert_eq!(words("add_field author x uint1"), "uint16");
        assert_eq!(words("add_field author x ref"), "references");
        assert_eq!(words("add_field author x references "), "author book");
        let rules = "restrict cascade set_null required default";
        assert_eq!(words("add_field author x references book "), rules);
        for rule in ON_DELETE.split('|') {
            assert!(annals::model::OnDelete::named(rule).is_some(), "{rule}");
        }
        assert_eq!(words("add_field author x int8 "), "null default");
        assert_eq!(words("add_field author x int8 null "), "default");
        assert_eq!(words("commit "), "soft half two_phase checksummed at");
        assert_eq!(words("commit soft "), "at");
        assert_eq!(words("commit at "), "");
        assert_eq!(words("backfill "), "passive full restart truncate");
        assert_eq!(words("help comm"), "comment commit");
        assert_eq!(words("drop_index "), "by_name");
        assert_eq!(words("drop_field author b"), "born");
        assert_eq!(words("set_single_row book "), "true false");
        assert_eq!(words("no_history_index b"), "book");
        assert_eq!(words("update_vector author 0 alive 2 true "), "true false");
        assert_eq!(words("table b"), "book");
        assert_eq!(words("table book "), "");
    }

    #[test]
    fn where_nothing_is_known_nothing_is_offered() {
        for line in ["frob ", "insert none ", "update none 1 ", "comment \"ins", "# ins", "begin "]
        {
            assert_eq!(words(line), "", "{line:?}");
        }
        assert_eq!(words("comment \"done\""), "");
        assert_eq!(words("insert # "), "");
    }

    #[test]
    fn lists_of_fields_go_on_behind_the_comma() {
        let found = complete(&schema(), "create_index by_name author name,b");
        assert_eq!(found.words, ["born"]);
        assert_eq!(found.start, "create_index by_name author name,".len());
        assert!(!found.ends_word);
        assert_eq!(words("create_index by_name author name,"), "alive born");
    }

    #[test]
    fn words_are_replaced_from_their_beginning_in_bytes() {
        let found = complete(&schema(), "insert author \"é\" t");
        assert_eq!((found.start, found.words), ("insert author \"é\" ".len(), vec!["true".into()]));
    }

    #[test]
    fn hints_tell_what_is_missing() {
        let hint = |line| hint(&schema(), line).unwrap_or_default();
        assert_eq!(hint("insert "), "T VALUE..");
        assert_eq!(hint("insert author "), "name alive born");
        assert_eq!(hint("insert author \"x\" "), "alive born");
        assert_eq!(hint("insert_at author 5 \"x\" true "), "born");
        assert_eq!(hint("insert author \"x\" true 5 "), "");
        assert_eq!(hint("update_vector author 5 "), "");
        assert_eq!(hint("insert"), "");
        assert_eq!(hint("begin "), "");
    }
}
