//! `annals compile`: a schema file to Rust source.

use std::io::Write;
use std::path::PathBuf;

use annals::Result;
use clap::Args;

use crate::files::{NewFile, cannot};
use crate::output::Output;
use crate::{Outcome, language};

/// Compile a schema file to Rust
///
/// Prints the same code that the macro `annals::schema!` generates. All mistakes of a file are
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
    let code = language::rust_code(&arguments.file)?;
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
