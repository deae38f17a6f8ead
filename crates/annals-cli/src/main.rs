//! The program `annals`.

use std::process::ExitCode;

fn main() -> ExitCode {
    annals_cli::main()
}
