//! Statements and commands with a dot, one after the other, without a person.

use annals::Result;
use annals_sql::Parameters;

use super::statements::is_whole;
use super::{Asking, Printing, dots};
use crate::output::Output;

/// Runs a script up to its end, `.quit` or the first error.
///
/// A line that begins with a dot is a command where no statement is open. What stands between two of them is asked at
/// once.
pub(crate) fn run(
    script: &str,
    asking: &mut Asking,
    printing: &mut Printing,
    parameters: &Parameters,
    output: &mut Output,
) -> Result<()> {
    let mut begun = String::new();
    for line in script.split_inclusive('\n') {
        if !line.trim_start().starts_with('.') || !is_whole(&begun) {
            begun.push_str(line);
            // `.once` is for one answer.
            if printing.once.is_some() && is_whole(&begun) && !begun.trim().is_empty() {
                printing.ask(asking, &std::mem::take(&mut begun), parameters, output)?;
            }
            continue;
        }
        let statements = std::mem::take(&mut begun);
        if !statements.trim().is_empty() {
            printing.ask(asking, &statements, parameters, output)?;
        }
        if !dots::run(line.trim(), asking, printing, output)? {
            return Ok(());
        }
    }
    match begun.trim() {
        "" => Ok(()),
        _ => printing.ask(asking, &begun, parameters, output),
    }
}
