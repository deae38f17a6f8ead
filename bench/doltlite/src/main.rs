//! DoltLite's part of `annals-bench past`: takes one step, and prints its figures.
//!
//! DoltLite has the symbols of SQLite, which `annals-bench` has already. So it is a program of its own, and a
//! workspace of its own, since its C takes minutes to build.

#[path = "../../src/random.rs"]
mod random;
#[path = "../../src/past/step.rs"]
mod step;
mod store;
#[path = "../../src/past/work.rs"]
mod work;

use work::Failure;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    step::take(&store::DoltLite, &arguments)
}
