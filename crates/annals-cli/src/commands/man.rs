//! `annals man`: the manual, as pages for `man`.

use std::io::Write;
use std::path::{Path, PathBuf};

use annals::{Error, Result};
use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::files::cannot;
use crate::new_file::NewFile;
use crate::output::Output;
use crate::{Cli, Outcome};

/// Print the manual page, or write one for each command
///
/// The pages are made from the commands themselves, so that they say what `--help` says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  annals man | man -l -
  annals man ~/.local/share/man/man1 && man annals-import-csv")]
pub(crate) struct Arguments {
    /// Where to write annals.1 and a page for each command, replacing those there; only the page
    /// of annals itself, on standard output, if left out
    directory: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut root = without_help(Cli::command());
    // Sets each command's full name and its inherited options.
    root.build();
    match &arguments.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .map_err(|error| cannot("create", directory, error))?;
            write_pages(&root, directory)?;
        }
        None => {
            let mut output = Output::new();
            output.write(&String::from_utf8_lossy(&page(&root)?))?;
            output.flush()?;
        }
    }
    Ok(Outcome::Done)
}

/// Writes the page of a command and of all below it.
fn write_pages(command: &clap::Command, directory: &Path) -> Result<()> {
    for below in command.get_subcommands() {
        write_pages(below, directory)?;
    }
    let path = directory.join(format!("{}.1", name(command)));
    let mut file = NewFile::create(&path)?;
    file.write_all(&page(command)?).map_err(|error| cannot("write", &path, error))?;
    file.finish()
}

/// Takes the commands `help` away: they repeat the others, and pages that say the same are no help.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Returns the whole name of a command, as in `annals-import-csv`.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(name(command).to_uppercase())
        .source(concat!("annals ", env!("CARGO_PKG_VERSION")))
        .manual("Annals")
        .render(&mut page)
        .map_err(|error| Error::io("cannot make a manual page", error))?;
    Ok(page)
}
