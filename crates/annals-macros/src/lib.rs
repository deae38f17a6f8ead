//! The macro `schema!`: a thin shell over the generator in `annals-schema`.

use std::fs;
use std::path::{Path, PathBuf};

use annals_schema::{generate_module, module_name, parse, render_all};
use proc_macro::{TokenStream, TokenTree};

/// Compiles a schema file into a module with the typed API of its databases.
///
/// The path is relative to the directory of the crate's `Cargo.toml`. The module is called what the
/// file's `namespace` says, else like the file without its extension. Mistakes in the file are
/// errors of the compiler, all at once; editing the file compiles the crate again.
///
/// ```ignore
/// annals::schema!("tutorial.schema");
///
/// let database = tutorial::Database::open("tutorial.annals")?;
/// ```
///
/// Names stay as they are in the schema if they can: keywords become raw identifiers; `self`,
/// `super`, `crate`, `Self`, `_`, and names that generated code uses itself, like a field `id`, get
/// `_` appended.
///
/// A file that isn't there, or isn't right, is an error when compiling:
///
/// ```compile_fail
/// annals_macros::schema!("nowhere.schema");
/// ```
#[proc_macro]
pub fn schema(input: TokenStream) -> TokenStream {
    let code = expand(input).unwrap_or_else(|message| format!("compile_error!({message:?});"));
    // Generated code that isn't Rust would be the generator's mistake, whose tests compile it.
    code.parse().unwrap_or_else(|error| {
        let message = format!("the code generated from the schema is not Rust: {error}");
        format!("compile_error!({message:?});").parse().unwrap_or_default()
    })
}

fn expand(input: TokenStream) -> Result<String, String> {
    let path = full_path(&literal(input)?)?;
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("can't read the schema {}: {error}", path.display()))?;
    let name = path.to_str().ok_or("the path of the schema must be UTF-8")?;
    let file = parse(&text)
        .map_err(|mistakes| format!("in the schema:\n\n{}", render_all(&mistakes, name)))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("schema");
    let module = generate_module(&file.schema, &module_name(file.namespace.as_deref(), stem));
    // The compiler then knows that the crate depends on the file.
    Ok(format!("const _: &[u8] = ::core::include_bytes!({name:?});\n{module}"))
}

/// Gives the absolute path of a file that is named relative to the crate's manifest.
fn full_path(name: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("CARGO_MANIFEST_DIR is not set: build with Cargo")?;
    Ok(Path::new(&root).join(name))
}

/// Takes the one string literal that the macro wants.
fn literal(input: TokenStream) -> Result<String, String> {
    const USAGE: &str = "write the path of a schema file: schema!(\"tutorial.schema\")";
    let mut tokens = input.into_iter();
    let mut token = tokens.next();
    // A literal that comes through another macro stands in an invisible group.
    while let Some(TokenTree::Group(group)) = &token {
        token = group.stream().into_iter().next();
    }
    let text = match (token, tokens.next()) {
        (Some(TokenTree::Literal(literal)), None) => literal.to_string(),
        _ => return Err(USAGE.to_owned()),
    };
    unquote(&text).ok_or_else(|| USAGE.to_owned())
}

/// Resolves a string literal, plain or raw.
fn unquote(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix('r') {
        let bare = raw.trim_matches('#');
        return Some(bare.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    }
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut path = String::new();
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => path.push(characters.next().filter(|c| matches!(c, '\\' | '"'))?),
            _ => path.push(c),
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::unquote;

    #[test]
    fn string_literals_of_every_kind() {
        assert_eq!(unquote(r#""a.schema""#).as_deref(), Some("a.schema"));
        assert_eq!(unquote(r#""a\\b\"c""#).as_deref(), Some("a\\b\"c"));
        assert_eq!(unquote("r\"a\\b\"").as_deref(), Some("a\\b"));
        assert_eq!(unquote("r#\"a\"#").as_deref(), Some("a"));
        assert_eq!(unquote(r#""a\n""#), None);
        assert_eq!(unquote("b\"a\""), None);
        assert_eq!(unquote("5"), None);
    }
}
