//! A program that forbids all that a program could forbid.
#![forbid(
    warnings,
    unsafe_code,
    dead_code,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    nonstandard_style,
    rust_2018_idioms,
    single_use_lifetimes,
    trivial_casts,
    unreachable_pub,
    unused,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]
annals::schema!("version_2.schema");

fn main() -> annals::Result<()> {
    let db = version_2::Database::open(
        "a.annals",
        version_2::Customs { set_default_language: &mut |_| Ok(()) },
    )?;
    db.close()
}
