//! A program that doesn't know of custom functions.
//~ argument #2 of type `Customs<'_>` is missing
annals::schema!("version_2.schema");

fn main() -> annals::Result<()> {
    version_2::Database::open("a.annals")?.close()
}
