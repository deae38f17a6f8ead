//! `annals compile`: a schema file to Rust source.

use std::io::Write;
use std::path::PathBuf;

use annals::Result;
use annals_schema::SchemaFile;
use clap::Args;

use crate::files::{NewFile, cannot};
use crate::output::Output;
use crate::{Outcome, language};

/// Compile a schema file to Rust
///
/// The same code that the macro `annals::schema!` generates, to be kept in a file and declared with
/// `mod`; if the schema has a namespace, a module of that name in it. All mistakes of a schema are
/// reported at once.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals compile people.schema -o src/people.rs")]
pub(crate) struct Arguments {
    /// The schema file
    file: PathBuf,
    /// Where to write the code, replacing what is there; standard output if left out
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let SchemaFile { namespace, schema } = language::read_schema(&arguments.file)?;
    let code = match namespace {
        Some(name) => annals_schema::generate_module(&schema, &name),
        None => annals_schema::generate(&schema),
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
