//! Prints which tests this run has left out, a line for each, after all others.
#![allow(clippy::print_stdout, reason = "it is what this program is for")]

fn main() {
    let lines = annals_untested::take();
    if !lines.is_empty() {
        println!("\nNot tested here, for lack of what each line names:");
    }
    for line in lines {
        println!("  {line}");
    }
}
