//! `annals completions`: a script that lets a shell complete commands, options and values.

use annals::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::output::Output;
use crate::{Cli, Outcome};

/// Print a script that lets a shell complete the commands of annals
///
/// It is generated from the commands themselves, so it matches this version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  annals completions bash > ~/.local/share/bash-completion/completions/annals
  annals completions zsh > ~/.zfunc/_annals       (a directory of $fpath)
  annals completions fish > ~/.config/fish/completions/annals.fish
  annals completions powershell >> $PROFILE
  annals completions elvish >> ~/.config/elvish/rc.elv")]
pub(crate) struct Arguments {
    /// The shell that the script is for
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    // Directly on standard output, the generator would panic if the reader closes it.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "annals", &mut script);
    let mut output = Output::new();
    output.write(&String::from_utf8_lossy(&script))?;
    output.flush()?;
    Ok(Outcome::Done)
}
