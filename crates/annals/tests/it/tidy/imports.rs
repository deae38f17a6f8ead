//! Which paths each module of a crate names: in `use` items with all that they group, in the middle of code, and
//! in tests; with what a path leads to when others hand it on under another name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::tokens::{Kind, Token, tokens};

/// A path as a list of names. In this crate it begins with `crate`.
pub(super) type Names = Vec<String>;

/// Something that a module names.
#[derive(Debug)]
pub(super) struct Import {
    /// The module that names it, without `crate`.
    pub(super) module: Names,
    /// Where: `a/b.rs:7`.
    pub(super) place: String,
    pub(super) is_test: bool,
    /// What it is: where it is defined, or as written if that is in another crate.
    pub(super) path: Names,
}

/// What a module has under names.
#[derive(Default)]
struct Module {
    /// What it imported, by the name under which it did.
    bound: BTreeMap<String, Names>,
    /// Modules of which it imported everything.
    globs: Vec<Names>,
    /// What it defines.
    items: BTreeSet<String>,
}

/// The modules of a crate, and what they name.
#[derive(Default)]
pub(super) struct Crate {
    modules: BTreeMap<Names, Module>,
    /// Those that have a file of their own.
    files: BTreeSet<Names>,
    tests: BTreeSet<Names>,
    named: Vec<Named>,
}

/// A path as it is written.
struct Named {
    module: Names,
    place: String,
    is_test: bool,
    path: Names,
}

/// Reads all modules of a crate, of which `folder` has the source.
pub(super) fn read(folder: &Path) -> Crate {
    let sources = super::files(folder, ".rs").into_iter().map(|path| {
        let relative = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
        (relative, fs::read_to_string(&path).unwrap())
    });
    of_sources(&sources.collect::<Vec<_>>())
}

/// Reads all modules of a crate from its files, each with its path in the folder of the source.
pub(super) fn of_sources(sources: &[(String, String)]) -> Crate {
    let mut sorted: Vec<_> = sources.iter().map(|(path, text)| (Path::new(path), text)).collect();
    // A module says of those below it whether they are tests, so it comes first.
    sorted.sort_by_key(|(path, _)| module_of(path).len());
    let mut all = Crate::default();
    for (path, text) in sorted {
        all.read_file(text, path);
    }
    all
}

/// Returns the module that a file is.
pub(super) fn module_of(relative: &Path) -> Names {
    let whole = relative.with_extension("");
    let mut names: Names = whole.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    names
}

impl Crate {
    fn read_file(&mut self, source: &str, relative: &Path) {
        let module = module_of(relative);
        let is_test = (0..=module.len()).any(|len| self.tests.contains(&module[..len]));
        self.modules.entry(module.clone()).or_default();
        self.files.insert(module.clone());
        let file = relative.to_string_lossy().into_owned();
        let blocks = vec![Block { depth: 0, module, is_test }];
        let tokens = tokens(source);
        FileReader { all: self, file, tokens: &tokens, at: 0, depth: 0, blocks, below: false }
            .read();
    }

    /// Returns all that is named, by where it is defined.
    pub(super) fn imports(&self) -> Vec<Import> {
        let named = self.named.iter().map(|named| Import {
            module: named.module.clone(),
            place: named.place.clone(),
            is_test: named.is_test,
            path: self.resolve(&named.module, &named.path, 20, &mut Vec::new()),
        });
        named.collect()
    }

    /// Returns which file names something of which other: of the one that defines it, and of those that hand it on.
    pub(super) fn links(&self) -> BTreeSet<(Names, Names)> {
        let mut links = BTreeSet::new();
        for named in &self.named {
            let (from, mut passed) = (self.file_of(&named.module), Vec::new());
            self.resolve(&named.module, &named.path, 20, &mut passed);
            links.extend(passed.iter().map(|to| (from.clone(), self.file_of(to))));
        }
        links
    }

    /// Returns which file names something of which other, where that is defined, tests left out.
    pub(super) fn product_links(&self) -> BTreeSet<(Names, Names)> {
        let product = self.named.iter().filter(|named| !named.is_test);
        let links = product.filter_map(|named| {
            let path = self.resolve(&named.module, &named.path, 20, &mut Vec::new());
            let inside = path.strip_prefix(&["crate".to_owned()][..])?;
            Some((self.file_of(&named.module), self.file_of(inside)))
        });
        links.collect()
    }

    /// Returns the file that a module is in.
    fn file_of(&self, module: &[String]) -> Names {
        let lens = (0..=module.len()).rev();
        let mut prefixes = lens.map(|len| module[..len].to_vec());
        prefixes.find(|prefix| self.files.contains(prefix)).unwrap_or_default()
    }

    /// Returns where that which a module names is defined; returns up after `fuel` aliases. Adds the modules on the way
    /// there to `passed`.
    fn resolve(
        &self,
        module: &[String],
        path: &[String],
        fuel: usize,
        passed: &mut Vec<Names>,
    ) -> Names {
        let Some((first, rest)) = path.split_first().filter(|_| fuel > 0) else {
            return path.to_vec();
        };
        let (mut at, mut rest): (Names, &[String]) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (module.to_vec(), rest),
            "super" => (module[..module.len().saturating_sub(1)].to_vec(), rest),
            _ if self.knows(module, first) => (module.to_vec(), path),
            _ => return path.to_vec(),
        };
        while let Some((name, after)) = rest.split_first() {
            let below = [&at[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                at.pop();
            } else if self.modules.contains_key(&below) {
                at = below;
            } else if let Some(target) = self.modules.get(&at).and_then(|m| m.bound.get(name)) {
                let target = [&target[..], after].concat();
                passed.push(at.clone());
                return self.resolve(&at, &target, fuel - 1, passed);
            } else if let Some(target) = self.handed_on(&at, name, fuel - 1) {
                let target = [&target[..], after].concat();
                passed.push(at);
                return self.resolve(&[], &target, fuel - 1, passed);
            } else {
                break;
            }
            rest = after;
        }
        passed.push(at.clone());
        let whole = std::iter::once("crate".to_owned()).chain(at).chain(rest.iter().cloned());
        whole.collect()
    }

    /// True if a name, without `crate` or the like before it, is one of this module.
    fn knows(&self, module: &[String], name: &str) -> bool {
        let below = [module, &[name.to_owned()]].concat();
        self.modules.contains_key(&below)
            || self.modules.get(module).is_some_and(|module| module.bound.contains_key(name))
    }

    /// Returns what a name is that a module imported with everything else of another.
    fn handed_on(&self, at: &[String], name: &str, fuel: usize) -> Option<Names> {
        let module = self.modules.get(at)?;
        if module.items.contains(name) || fuel == 0 {
            return None;
        }
        module.globs.iter().find_map(|glob| {
            let target = self.resolve(at, glob, fuel, &mut Vec::new());
            let (first, inside) = target.split_first()?;
            let its = self.modules.get(inside).filter(|_| first == "crate")?;
            let has = its.items.contains(name) || self.knows(inside, name);
            has.then(|| [&target[..], &[name.to_owned()]].concat())
        })
    }
}

/// A pair of braces that changes what names mean.
struct Block {
    /// How many braces are open in it at least.
    depth: usize,
    module: Names,
    is_test: bool,
}

struct FileReader<'a> {
    all: &'a mut Crate,
    file: String,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    blocks: Vec<Block>,
    /// True if the item that comes next is for tests only.
    below: bool,
}

impl FileReader<'_> {
    fn kind(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match self.kind(ahead)? {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is_mark(&self, ahead: usize, mark: char) -> bool {
        self.kind(ahead) == Some(&Kind::Mark(mark))
    }

    fn block(&self) -> &Block {
        self.blocks.last().expect("the file itself stays")
    }

    fn read(mut self) {
        while self.at < self.tokens.len() {
            if self.is_mark(0, '#') && self.is_mark(1, '[') {
                self.attribute(2);
            } else if self.word(0) == Some("use") && !self.is_mark(1, '<') {
                self.at += 1;
                self.import(&Vec::new());
                self.below = false;
            } else if self.word(0).is_some() {
                self.word_in_code();
            } else {
                self.mark();
            }
        }
    }

    /// Skips an attribute; remembers whether it says that what follows is for tests only.
    fn attribute(&mut self, from: usize) {
        let is_condition = self.word(from) == Some("cfg");
        let (mut depth, mut is_negated) = (1, false);
        self.at += from;
        while depth > 0 && self.at < self.tokens.len() {
            match self.kind(0) {
                Some(Kind::Mark('[')) => depth += 1,
                Some(Kind::Mark(']')) => depth -= 1,
                Some(Kind::Word(word)) if word == "not" => is_negated = true,
                Some(Kind::Word(word) | Kind::Text(word))
                    if is_condition && !is_negated && (word == "test" || word == "testing") =>
                {
                    self.below = true;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn mark(&mut self) {
        if self.is_mark(0, '{') {
            self.depth += 1;
            if self.below {
                let block = self.block();
                let module = block.module.clone();
                self.blocks.push(Block { depth: self.depth, module, is_test: true });
                self.below = false;
            }
        } else if self.is_mark(0, '}') {
            self.depth = self.depth.saturating_sub(1);
            while self.blocks.len() > 1 && self.depth < self.block().depth {
                self.blocks.pop();
            }
        } else if self.is_mark(0, ';') {
            self.below = false;
        }
        self.at += 1;
    }

    fn word_in_code(&mut self) {
        const ITEMS: [&str; 9] =
            ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
        let word = self.word(0).unwrap_or_default().to_owned();
        if word == "mod" {
            return self.module();
        }
        let named = if word == "macro_rules" { self.word(2) } else { self.word(1) };
        if let Some(item) = named.filter(|_| ITEMS.contains(&&*word)).map(str::to_owned) {
            let module = self.block().module.clone();
            self.all.modules.entry(module).or_default().items.insert(item);
        }
        if self.kind(1) != Some(&Kind::Path) {
            self.at += 1;
            return;
        }
        let line = self.at;
        let mut path = vec![word];
        self.at += 1;
        while self.kind(0) == Some(&Kind::Path)
            && let Some(next) = self.word(1).map(str::to_owned)
        {
            path.push(next);
            self.at += 2;
        }
        self.note(line, path);
        // What follows, `<` perhaps, begins no path.
        if self.kind(0) == Some(&Kind::Path) {
            self.at += 1;
        }
    }

    fn module(&mut self) {
        let (Some(name), has_body) = (self.word(1).map(str::to_owned), self.is_mark(2, '{')) else {
            self.at += 1;
            return;
        };
        let block = self.block();
        let module = [&block.module[..], &[name]].concat();
        let is_test = block.is_test || self.below;
        self.all.modules.entry(module.clone()).or_default();
        if is_test {
            self.all.tests.insert(module.clone());
        }
        self.below = false;
        self.at += 2;
        if has_body {
            self.depth += 1;
            self.blocks.push(Block { depth: self.depth, module, is_test });
            self.at += 1;
        }
    }

    /// Reads what follows `use`, or one part of a group, all of which begin with `before`.
    fn import(&mut self, before: &Names) {
        let (mut path, from) = (before.clone(), self.at);
        loop {
            match self.kind(0).cloned() {
                Some(Kind::Word(word)) if word == "as" => {
                    let name = self.word(1).unwrap_or_default().to_owned();
                    self.at += 2;
                    return self.bind(from, path, Some(name));
                }
                Some(Kind::Word(word)) => {
                    path.push(word);
                    self.at += 1;
                }
                Some(Kind::Path) => self.at += 1,
                Some(Kind::Mark('*')) => {
                    self.at += 1;
                    self.note(from, path.clone());
                    let module = self.block().module.clone();
                    return self.all.modules.entry(module).or_default().globs.push(path);
                }
                Some(Kind::Mark('{')) => {
                    self.at += 1;
                    while !self.is_mark(0, '}') && self.at < self.tokens.len() {
                        self.import(&path);
                        self.at += usize::from(self.is_mark(0, ','));
                    }
                    self.at += 1;
                    return;
                }
                _ => return self.bind(from, path, None),
            }
        }
    }

    /// Notes an import and under which name it is known here.
    fn bind(&mut self, from: usize, mut path: Names, name: Option<String>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(name) = name.or_else(|| path.last().cloned()) else { return };
        self.note(from, path.clone());
        let module = self.block().module.clone();
        // A path that begins with its own name is that of another crate.
        if path.first() != Some(&name) {
            self.all.modules.entry(module).or_default().bound.insert(name, path);
        }
    }

    fn note(&mut self, at: usize, path: Names) {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        let (module, is_test) = (self.block().module.clone(), self.block().is_test || self.below);
        let place = format!("{}:{line}", self.file);
        self.all.named.push(Named { module, place, is_test, path });
    }
}
