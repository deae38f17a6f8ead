//! The parsed form of a command: the words that may follow each other.
//!
//! A form is made of words: `LEVEL` in capitals is a placeholder, `at` in small letters is literal, `soft|hard` is
//! one of these. Words in brackets may be left out, and `..` at the end of a word means that it may be repeated.

/// The meaning of a word of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The name of a table.
    Table,
    /// The name of a field of the table before.
    Field,
    /// Names of fields, with commas between them.
    Fields,
    /// The name of an index.
    Index,
    /// A type of fields.
    Type,
    /// A value of the field before.
    Value,
    /// The values of all fields.
    Values,
    /// The name of a command.
    Command,
    /// One of these words, with `|` between them.
    Word(&'static str),
    /// Something that only the user knows: an id, a new name, a number.
    Free,
}

impl Slot {
    fn named(word: &'static str) -> Self {
        match word {
            "T" => Self::Table,
            "FIELD" => Self::Field,
            "FIELD[,FIELD..]" => Self::Fields,
            "INDEX" => Self::Index,
            "TYPE" => Self::Type,
            "VALUE" => Self::Value,
            "VALUE.." => Self::Values,
            "COMMAND" => Self::Command,
            word if word.starts_with(|c: char| c.is_ascii_lowercase()) => Self::Word(word),
            _ => Self::Free,
        }
    }
}

/// A form, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// The words that must be there, in order.
    pub(crate) required: Vec<Slot>,
    /// The optional words: in each group all or none.
    pub(crate) optional: Vec<Vec<Slot>>,
}

/// Reads the form of a command's arguments.
pub(crate) fn read(form: &'static str) -> Form {
    let mut read = Form::default();
    let mut is_open = false;
    for word in form.split_whitespace() {
        let begins = word.strip_prefix('[');
        let word = begins.unwrap_or(word);
        let ends = (is_open || begins.is_some()).then(|| word.strip_suffix(']')).flatten();
        let slot = Slot::named(ends.unwrap_or(word));
        match (begins, read.optional.last_mut()) {
            (Some(_), _) => read.optional.push(vec![slot]),
            (None, Some(group)) if is_open => group.push(slot),
            (None, _) => read.required.push(slot),
        }
        is_open = (is_open || begins.is_some()) && ends.is_none();
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::catalog;
    use annals::Level;

    #[test]
    fn forms_are_read() {
        let form = read("NAME T FIELD[,FIELD..]");
        assert_eq!(form.required, [Slot::Free, Slot::Table, Slot::Fields]);
        assert_eq!(form.optional, [] as [Vec<Slot>; 0]);
        let form = read("T NAME TYPE [null] [default VALUE]");
        assert_eq!(form.required, [Slot::Table, Slot::Free, Slot::Type]);
        assert_eq!(
            form.optional,
            [vec![Slot::Word("null")], vec![Slot::Word("default"), Slot::Value]]
        );
    }

    #[test]
    fn backfill_names_the_modes_that_there_are() {
        let form = read(catalog::find("backfill").unwrap().form);
        let [Slot::Word(modes)] = form.optional[0][..] else { panic!("{form:?}") };
        let names = annals::BackfillMode::ALL.map(annals::BackfillMode::name);
        assert_eq!(modes.split('|').collect::<Vec<_>>(), names);
    }

    #[test]
    fn commit_names_the_levels_that_there_are() {
        let form = read(catalog::find("commit").unwrap().form);
        let [Slot::Word(levels)] = form.optional[0][..] else { panic!("{form:?}") };
        for level in levels.split('|') {
            assert_eq!(Level::named(level).map(Level::name), Some(level));
        }
    }
}
