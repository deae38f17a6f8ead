//! A program that forgets a custom function.
//~ error[E0063]: missing field `set_default_language` in initializer of `Customs<'_>`
annals::schema!("version_2.schema");

fn main() -> annals::Result<()> {
    version_2::Database::open("a.annals", version_2::Customs {})?.close()
}
