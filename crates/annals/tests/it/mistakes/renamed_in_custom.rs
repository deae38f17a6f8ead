//! A custom function that uses what comes after it.
//~ no method named `file` found for mutable reference `&mut
annals::schema!("version_2.schema");

fn main() -> annals::Result<()> {
    let customs = version_2::Customs { set_default_language: &mut |tx| {
        assert_eq!(tx.file().len(), 0);
        Ok(())
    } };
    version_2::Database::open("a.annals", customs)?.close()
}
