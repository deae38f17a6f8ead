//! The program `annals`, for the blocks of the guide that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_cli::main(true)
}
