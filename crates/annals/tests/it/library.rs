//! A library that is called like its schema, whose module is called so as well.
//!
//! Where Cargo tests its documentation, the library is also a crate that it may use.

use std::fs;
use std::path::Path;

use crate::package::Package;

/// Writes the package of the library `library`. `schema` and `imports` are statements in its root.
pub(crate) fn package(name: &str, schema: &str, imports: &str) -> Package {
    let package = Package::new(name, "[lib]\nname = \"library\"\n");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/library");
    let file = |name: &str| fs::read_to_string(files.join(name)).unwrap();
    package.write("library.schema", &file("library.schema"));
    package.write("src/lib.rs", &format!("{}\n{schema}\n{imports}\n", file("lib.rs.in")));
    package
}

/// Runs all tests of a library, and returns the printed lines if they fail.
fn failure(name: &str, schema: &str, imports: &str) -> Option<String> {
    let output = package(name, schema, imports).cargo("test").output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&printed).into_owned())
}

const SCHEMA: &str = "annals::schema!(\"library.schema\");";

#[test]
fn a_library_may_be_called_like_its_schema() {
    for (schema, imports) in [
        (SCHEMA, "use crate::library::{self as db, book};"),
        ("annals::schema!(pub mod db = \"library.schema\");", "use db::book;"),
    ] {
        let failure = failure("called_like_its_schema", schema, imports);
        assert_eq!(failure, None, "{schema} {imports}");
    }
}

/// No macro can make a module that such an import finds. The compiler says what to write.
#[test]
fn an_import_that_could_mean_the_library_is_refused() {
    let imports = "use library::{self as db, book};";
    let failure = failure("could_mean_the_library", SCHEMA, imports).unwrap();
    assert!(failure.contains("E0659"), "{failure}");
    assert!(failure.contains("use `crate::library` to refer to this module"), "{failure}");
}
