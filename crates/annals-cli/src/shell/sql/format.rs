//! The formats of answers.

use clap::ValueEnum;

/// How rows are printed. Other names are those of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns below each other
    #[value(aliases = ["box", "column", "columns"])]
    Table,
    /// A line for each value
    Line,
    /// Comma-separated values, with a line of names
    Csv,
    /// Values between tabs, as they are, with a line of names
    #[value(alias = "tsv")]
    Tabs,
    /// Values between `|`, as they are, with a line of names
    List,
    /// A table of Markdown
    Markdown,
    /// A list of objects
    Json,
    /// An object a line
    #[value(alias = "jsonlines")]
    Ndjson,
    /// A Parquet file, with the types of columns
    #[cfg(feature = "arrow")]
    Parquet,
    /// A stream of Arrow, with the types of columns
    #[cfg(feature = "arrow")]
    Arrow,
}

impl Format {
    /// Returns the names of all formats.
    pub(crate) fn names() -> String {
        let all = Self::value_variants().iter().filter_map(Self::to_possible_value);
        let names: Vec<_> = all.map(|value| value.get_name().to_owned()).collect();
        names.join(", ")
    }

    /// True if an answer is no text, and a file has one.
    pub(crate) const fn is_binary(self) -> bool {
        #[cfg(feature = "arrow")]
        return matches!(self, Self::Parquet | Self::Arrow);
        #[cfg(not(feature = "arrow"))]
        return false;
    }
}

/// How to print answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink {
    pub(crate) format: Format,
    pub(crate) has_header: bool,
}
