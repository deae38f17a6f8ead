//! The macros `schema!`: thin shells over the generator in `annals-codegen`.

use std::fs;
use std::path::{Path, PathBuf};

use annals_codegen::{expand_module, expand_module_with_replicas, module_name};
use annals_schema::{SchemaFile, parse_files, render_all};
use proc_macro::{Group, Span, TokenStream, TokenTree};

/// Compiles a schema file, or several as one, into a module with the typed API of its databases.
///
/// A path is relative to the directory of the crate's `Cargo.toml`. The module is called what
/// `namespace` says, else like the first file without its extension. Mistakes in the files are
/// errors of the compiler, all at once; editing a file compiles the crate again. Lines that change
/// rows, as scripts of joedb have them, do nothing.
///
/// ```ignore
/// annals::schema!("tutorial.schema");
///
/// let database = tutorial::Database::open("tutorial.annals")?;
/// ```
///
/// joedb's schema and its compiler's options are two files:
///
/// ```ignore
/// annals::schema!("people.joedbi", "people.joedbc");
/// ```
///
/// A module may be named by the program, too, and be private:
///
/// ```ignore
/// annals::schema!(pub mod db = "people.schema");
/// ```
///
/// A library needs that, or `use crate::people` rather than `use people`, if it is called `people` itself:
/// where its documentation is tested, `people` could be the library as well.
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
    compiled(input, expand_module)
}

/// Compiles a schema as [`schema!`] does, with the types of its replicas, which are those of `annals-replica`.
#[proc_macro]
pub fn schema_with_replicas(input: TokenStream) -> TokenStream {
    compiled(input, expand_module_with_replicas)
}

/// Generates the module of a schema.
type Generate = fn(&SchemaFile, &str) -> String;

fn compiled(input: TokenStream, generate: Generate) -> TokenStream {
    let expanded = expand(input, generate);
    let code = expanded.unwrap_or_else(|message| format!("compile_error!({message:?});"));
    // Generated code that isn't Rust would be the generator's mistake, whose tests compile it.
    let code = code.parse().unwrap_or_else(|error| {
        let message = format!("the code generated from the schema is not Rust: {error}");
        format!("compile_error!({message:?});").parse().unwrap_or_default()
    });
    called_here(code)
}

/// Returns all tokens the place of the macro's call. Parsed from a text they have places in that text, which
/// editors look for in the file with the call.
fn called_here(code: TokenStream) -> TokenStream {
    let placed = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), called_here(group.stream())).into();
        }
        token.set_span(Span::call_site());
        token
    };
    code.into_iter().map(placed).collect()
}

fn expand(input: TokenStream, generate: Generate) -> Result<String, String> {
    let Input { module, files: names } = read(input)?;
    let mut files = Vec::new();
    for name in &names {
        let path = full_path(name)?;
        let text = fs::read_to_string(&path).map_err(|error| cannot_read(&path, &error))?;
        let path = path.into_os_string().into_string();
        files.push((path.map_err(|_| "the path of the schema must be UTF-8")?, text));
    }
    let named: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let file = parse_files(&named)
        .map_err(|mistakes| format!("in the schema:\n\n{}", render_all(&mistakes, "")))?;
    let first = names.first().map(Path::new);
    let stem = first.and_then(Path::file_stem).and_then(|stem| stem.to_str()).unwrap_or("schema");
    let (visibility, name) = match module {
        Some(module) => (module.visibility, module.name),
        None => ("pub ".to_owned(), module_name(file.namespace.as_deref(), stem)),
    };
    let module = generate(&file, &name);
    let module = module.replacen("pub mod ", &format!("{visibility}mod "), 1);
    // The compiler then knows that the crate depends on the files.
    let depends =
        |(name, _): &(&str, &str)| format!("const _: &[u8] = ::core::include_bytes!({name:?});\n");
    Ok(named.iter().map(depends).collect::<String>() + &module)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    format!(
        "can't read the schema {path}: {error}; the path is relative to the folder of Cargo.toml"
    )
}

/// Returns the absolute path of a file that is named relative to the crate's manifest.
fn full_path(name: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("CARGO_MANIFEST_DIR is not set: build with Cargo")?;
    Ok(Path::new(&root).join(name))
}

const USAGE: &str = "write the path of a schema file, or of several with commas between: \
    schema!(\"tutorial.schema\"); to name the module, schema!(pub mod db = \"tutorial.schema\")";

/// What the macro is given.
struct Input {
    /// The module, if it is named.
    module: Option<Module>,
    /// The paths of the schema files.
    files: Vec<String>,
}

/// A module that the program names itself.
struct Module {
    /// Empty, or with a blank at its end.
    visibility: String,
    name: String,
}

/// Reads `"PATH", ..` or `VISIBILITY mod NAME = "PATH", ..`.
fn read(input: TokenStream) -> Result<Input, String> {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    let is = |token: &TokenTree, text: &str| token.to_string() == text;
    let Some(keyword) = tokens.iter().position(|token| is(token, "mod")) else {
        return Ok(Input { module: None, files: literals(tokens)? });
    };
    let mut rest = tokens.into_iter();
    let visibility: Vec<_> = rest.by_ref().take(keyword).map(|token| token.to_string()).collect();
    let name = match (rest.next(), rest.next(), rest.next()) {
        (_, Some(TokenTree::Ident(name)), Some(equals)) if is(&equals, "=") => name.to_string(),
        _ => return Err(USAGE.to_owned()),
    };
    let mut visibility = visibility.concat();
    if !visibility.is_empty() {
        visibility.push(' ');
    }
    let name = name.strip_prefix("r#").unwrap_or(&name).to_owned();
    Ok(Input { module: Some(Module { visibility, name }), files: literals(rest)? })
}

/// Takes string literals, separated by commas.
fn literals(input: impl IntoIterator<Item = TokenTree>) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut expect_name = true;
    for mut token in input {
        // A literal that comes through another macro stands in an invisible group.
        while let TokenTree::Group(group) = &token {
            token = group.stream().into_iter().next().ok_or(USAGE)?;
        }
        match &token {
            TokenTree::Literal(literal) if expect_name => {
                names.push(unquote(&literal.to_string()).ok_or(USAGE)?);
            }
            TokenTree::Punct(comma) if !expect_name && comma.as_char() == ',' => {}
            _ => return Err(USAGE.to_owned()),
        }
        expect_name = !expect_name;
    }
    if names.is_empty() { Err(USAGE.to_owned()) } else { Ok(names) }
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
