//! `annals compile`: a schema to Rust or Python source.

use std::io::Write;
use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::files::cannot;
use crate::new_file::NewFile;
use crate::output::Output;
use crate::{Outcome, language};

/// Compile a schema file to Rust
///
/// The same code that the macro `annals::schema!` generates, to be kept in a file and declared with
/// `mod`; if the schema has a namespace, a module of that name in it. All mistakes of a schema are
/// reported at once. Several files are one schema, like joedb's two.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals compile people.schema -o src/people.rs
  annals compile people.joedbi people.joedbc -o src/people.rs
  annals compile --python people.schema -o people.py")]
pub(crate) struct Arguments {
    /// The schema file, or several, read in this order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write a typed module for the Python package instead
    #[arg(long)]
    python: bool,
    /// The output file, which is replaced if it exists; standard output if left out
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let file = language::read_schemas(&arguments.files)?;
    let code = match &file.namespace {
        _ if arguments.python => annals_codegen::generate_python(&file),
        Some(name) => annals_codegen::generate_module(&file, name),
        None => annals_codegen::generate(&file),
    };
    match &arguments.output {
        Some(path) => {
            let mut file = NewFile::create(path)?;
            file.write_all(code.as_bytes()).map_err(|error| cannot("write", path, error))?;
            file.finish()?;
        }
        None => {
            let mut output = Output::new();
            output.write(&code)?;
            output.flush()?;
        }
    }
    Ok(Outcome::Done)
}
