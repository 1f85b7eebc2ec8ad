//! The public API is listed in `docs/api`: the facade, the ports of core, and the crates that embedders and authors of
//! stores and transports use. A change of it shows in the same commit. The operations of the engine are listed by
//! `docs/openapi.json`.
//!
//! `UPDATE=1 cargo test -p messaging-engine --test public_api` writes the lists anew.
//!
//! Read from the source: items that can be reached from the root of a crate through public modules and re-exports,
//! their members, and the traits they implement. Items made by macros are shown as the call of the macro.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use quote::{ToTokens, quote};
use syn::{
    Attribute, Fields, ImplItem, Item, ItemUse, Meta, Signature, TraitItem, Type, UseTree, Visibility, parse_file,
};

/// The crates, and the module of each that is listed; empty for all.
const CRATES: [(&str, &str); 6] = [
    ("messaging", ""),
    ("messaging-core", "ports"),
    ("messaging-http", ""),
    ("messaging-store", ""),
    ("messaging-testing", ""),
    ("messaging-transport", ""),
];

/// Place of a definition: the path of its module, and its name.
type ItemPath = (String, String);

/// The items of a crate by the path of their module, `domain::channel::address`; empty for the root.
type Modules = BTreeMap<String, Vec<Item>>;

/// A crate and its public items.
#[derive(Default)]
struct Listing {
    modules: Modules,
    /// Public names of definitions.
    public: HashMap<ItemPath, String>,
    lines: BTreeSet<String>,
}

fn tidy(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    for (loose, tight) in [
        (" ::", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("& ", "&"),
        (" :", ":"),
        ("[ ", "["),
        (" ]", "]"),
        (" ;", ";"),
        (" !", "!"),
        ("# ", "#"),
        (" ..", ".."),
        ("->(", "-> ("),
    ] {
        text = text.replace(loose, tight);
    }
    text
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|attribute| attribute.meta.require_list().ok()).any(|condition| {
        let text = condition.tokens.to_string();
        text == "test" || text.replace(' ', "").starts_with("all(test,")
    })
}

/// The attributes that matter to callers.
fn told(attributes: &[Attribute]) -> String {
    let noticed = ["cfg", "derive", "non_exhaustive", "proc_macro_derive"];
    let noticed = attributes.iter().filter(|attribute| noticed.iter().any(|name| attribute.path().is_ident(name)));
    noticed.map(|attribute| format!("{} ", tidy(attribute))).collect()
}

/// Returns true if an item is `#[doc(hidden)]`: public for other crates of this repository only.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "hidden")
    })
}

fn below(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Reads a file and those of its modules. `read` returns the text of a path below `src`, if there is such a file.
fn load(module: &str, file: &str, read: &dyn Fn(&str) -> Option<String>, modules: &mut Modules) {
    let text = read(file).unwrap_or_else(|| panic!("no file {file}"));
    let items = parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}")).items;
    add(module, items, read, modules);
}

fn add(module: &str, items: Vec<Item>, read: &dyn Fn(&str) -> Option<String>, modules: &mut Modules) {
    for item in &items {
        if let Item::Mod(inner) = item
            && !is_of_tests(&inner.attrs)
        {
            let path = below(module, &inner.ident.to_string());
            match &inner.content {
                Some((_, items)) => add(&path, items.clone(), read, modules),
                None => load(&path, &format!("{}.rs", path.replace("::", "/")), read, modules),
            }
        }
    }
    modules.insert(module.to_owned(), items);
}

/// The leaves of a `use` tree, each with the name that it is imported by; `*` for all.
fn leaves(tree: &UseTree, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(path.ident.to_string()), found),
        UseTree::Name(name) if name.ident == "self" => {
            found.push((before.to_vec(), before.last().cloned().unwrap_or_default()));
        }
        UseTree::Name(name) => found.push((with(name.ident.to_string()), name.ident.to_string())),
        UseTree::Rename(name) => found.push((with(name.ident.to_string()), name.rename.to_string())),
        UseTree::Glob(_) => found.push((with("*".to_owned()), "*".to_owned())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, found)),
    }
}

fn name_of(item: &Item) -> Option<(&Visibility, String)> {
    Some(match item {
        Item::Const(item) => (&item.vis, item.ident.to_string()),
        Item::Enum(item) => (&item.vis, item.ident.to_string()),
        Item::Fn(item) => (&item.vis, item.sig.ident.to_string()),
        Item::Static(item) => (&item.vis, item.ident.to_string()),
        Item::Struct(item) => (&item.vis, item.ident.to_string()),
        Item::Trait(item) => (&item.vis, item.ident.to_string()),
        Item::Type(item) => (&item.vis, item.ident.to_string()),
        _ => return None,
    })
}

fn signature(signature: &Signature) -> String {
    tidy(signature)
}

impl Listing {
    fn of(read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut this = Self::default();
        load("", "lib.rs", read, &mut this.modules);
        this.module("", "");
        this.implementations();
        this
    }

    fn text(&self) -> String {
        self.text_of("")
    }

    /// The lines of a module.
    fn text_of(&self, module: &str) -> String {
        let lines = self.lines.iter().filter(|line| line.starts_with(module));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Lists the public items of a module under a public path.
    fn module(&mut self, public: &str, module: &str) {
        for item in self.modules.get(module).cloned().unwrap_or_default() {
            match &item {
                Item::Mod(inner) if is_public(&inner.vis) && !is_of_tests(&inner.attrs) && !is_hidden(&inner.attrs) => {
                    let name = inner.ident.to_string();
                    self.lines.insert(format!("{}: {}mod", below(public, &name), told(&inner.attrs)));
                    self.module(&below(public, &name), &below(module, &name));
                }
                Item::Use(passed_on) if is_public(&passed_on.vis) => self.passed_on(public, module, passed_on),
                Item::Macro(made) if made.ident.is_none() => {
                    let text = tidy(&made.mac);
                    self.lines.insert(format!("{}: {text}", below(public, "(macro)")));
                }
                Item::Fn(function) if function.attrs.iter().any(|one| one.path().is_ident("proc_macro_derive")) => {
                    let line = format!("{}: {}", below(public, "(derive)"), told(&function.attrs).trim_end());
                    self.lines.insert(line);
                }
                item => {
                    if let Some((visibility, name)) = name_of(item)
                        && is_public(visibility)
                    {
                        self.item(&below(public, &name), (module.to_owned(), name.clone()), item);
                    }
                }
            }
        }
    }

    fn passed_on(&mut self, public: &str, module: &str, statement: &ItemUse) {
        let mut found = Vec::new();
        leaves(&statement.tree, &[], &mut found);
        for (path, name) in found {
            let Some(place) = self.place(module, &path) else {
                self.lines.insert(format!("{}: pub use {}", below(public, &name), path.join("::")));
                continue;
            };
            if name == "*" {
                self.module(public, &place.0);
            } else if let Some(item) = self.find(&place) {
                self.item(&below(public, &name), place, &item);
            } else {
                let inner = below(&place.0, &place.1);
                self.lines.insert(format!("{}: mod", below(public, &name)));
                self.module(&below(public, &name), &inner);
            }
        }
    }

    fn find(&self, (module, name): &ItemPath) -> Option<Item> {
        let items = self.modules.get(module)?;
        items.iter().find(|item| name_of(item).is_some_and(|(_, found)| found == *name)).cloned()
    }

    /// Finds the definition that a path used in a module leads to within the crate, through re-exports.
    fn place(&self, module: &str, path: &[String]) -> Option<ItemPath> {
        let (mut base, mut rest) = match path.first()?.as_str() {
            "crate" => (String::new(), &path[1..]),
            "self" => (module.to_owned(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                let mut names: Vec<&str> = module.split("::").collect();
                names.truncate(names.len().saturating_sub(up));
                (names.join("::"), &path[up..])
            }
            _ => (module.to_owned(), path),
        };
        while rest.len() > 1 && self.modules.contains_key(&below(&base, &rest[0])) {
            base = below(&base, &rest[0]);
            rest = &rest[1..];
        }
        let [name] = rest else { return None };
        let place = (base, name.clone());
        if name == "*" && path.len() > 1 {
            return self.modules.contains_key(&place.0).then_some(place);
        }
        if self.find(&place).is_some() || self.modules.contains_key(&below(&place.0, &place.1)) {
            return Some(place);
        }
        self.imported(&place)
    }

    /// Finds the definition of a name that a module imports.
    fn imported(&self, (module, name): &ItemPath) -> Option<ItemPath> {
        let mut found = Vec::new();
        for item in self.modules.get(module)? {
            if let Item::Use(statement) = item {
                leaves(&statement.tree, &[], &mut found);
            }
        }
        let (path, _) = found.into_iter().find(|(path, known)| known == name && path.len() > 1)?;
        self.place(module, &path)
    }

    fn item(&mut self, public: &str, place: ItemPath, item: &Item) {
        let mut members = Vec::new();
        let head = match item {
            Item::Const(item) => format!("{}const: {}", told(&item.attrs), tidy(&item.ty)),
            Item::Static(item) => format!("{}static: {}", told(&item.attrs), tidy(&item.ty)),
            Item::Type(item) => {
                format!("{}type{} = {}", told(&item.attrs), tidy(&item.generics), tidy(&item.ty))
            }
            Item::Fn(item) => format!("{}{}", told(&item.attrs), signature(&item.sig)),
            Item::Struct(item) => {
                members = fields(&item.fields, true);
                format!("{}struct{}", told(&item.attrs), tidy(&item.generics))
            }
            Item::Enum(item) => {
                for variant in &item.variants {
                    let shown = fields(&variant.fields, false).join(", ");
                    members.push(format!("{} {{{shown}}}", variant.ident));
                }
                format!("{}enum{}", told(&item.attrs), tidy(&item.generics))
            }
            Item::Trait(item) => {
                members = item.items.iter().map(trait_member).collect();
                let above = &item.supertraits;
                format!("{}trait{}: {}", told(&item.attrs), tidy(&item.generics), tidy(quote!(#above)))
            }
            _ => return,
        };
        self.lines.insert(format!("{public}: {head}"));
        for member in members {
            self.lines.insert(format!("{public}.{member}"));
        }
        self.public.entry(place).or_insert_with(|| public.to_owned());
    }

    /// Lists the methods and traits of public types, wherever they are implemented.
    fn implementations(&mut self) {
        let mut lines = Vec::new();
        for (module, items) in &self.modules {
            for item in items {
                let Item::Impl(block) = item else { continue };
                let Type::Path(path) = &*block.self_ty else { continue };
                let names: Vec<_> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                let Some(public) = self.place(module, &names).and_then(|place| self.public.get(&place)) else {
                    continue;
                };
                if is_of_tests(&block.attrs) {
                    continue;
                }
                if let Some((path, _)) = &block.trait_ {
                    let (generics, of) = (&block.generics, &block.self_ty);
                    let line = format!("{}impl{} {}", told(&block.attrs), tidy(generics), tidy(quote!(#path for #of)));
                    lines.push(format!("{public}: {line}"));
                    continue;
                }
                for member in &block.items {
                    match member {
                        ImplItem::Fn(item) if is_public(&item.vis) => {
                            lines.push(format!("{public}.{}{}", told(&item.attrs), signature(&item.sig)));
                        }
                        ImplItem::Const(item) if is_public(&item.vis) => {
                            lines.push(format!("{public}.const {}: {}", item.ident, tidy(&item.ty)));
                        }
                        _ => {}
                    }
                }
            }
        }
        self.lines.extend(lines);
    }
}

fn fields(fields: &Fields, only_public: bool) -> Vec<String> {
    let shown = fields.iter().enumerate().filter(|(_, field)| !only_public || is_public(&field.vis));
    let name = |(at, field): (usize, &syn::Field)| {
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
        format!("{name}: {}", tidy(&field.ty))
    };
    shown.map(name).collect()
}

fn trait_member(member: &TraitItem) -> String {
    match member {
        TraitItem::Fn(item) => {
            let body = if item.default.is_some() { " {}" } else { "" };
            format!("{}{body}", signature(&item.sig))
        }
        TraitItem::Const(item) => {
            let body = if item.default.is_some() { " = …" } else { "" };
            format!("const {}: {}{body}", item.ident, tidy(&item.ty))
        }
        other => tidy(other),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

#[test]
fn is_what_is_written_down() {
    let mut changed = Vec::new();
    for (name, module) in CRATES {
        let source = root().join(name).join("src");
        let text = Listing::of(&|file| fs::read_to_string(source.join(file)).ok()).text_of(module);
        let file = root().join("docs/api").join(format!("{name}.txt"));
        let written = fs::read_to_string(&file).unwrap_or_default();
        if text == written {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(file.parent().expect("a folder")).expect("docs/api");
            fs::write(&file, &text).expect("the file");
            continue;
        }
        let (now, before): (BTreeSet<_>, BTreeSet<_>) = (text.lines().collect(), written.lines().collect());
        changed.push(format!("{name}:"));
        changed.extend(before.difference(&now).map(|line| format!("- {line}")));
        changed.extend(now.difference(&before).map(|line| format!("+ {line}")));
    }
    assert!(
        changed.is_empty(),
        "the public surface is another one than docs/api says; if that is meant, UPDATE=1 writes it down:\n{}",
        changed.join("\n")
    );
}

#[test]
fn every_change_of_a_signature_is_seen() {
    let lib = "mod inner;\npub mod shown;\npub use inner::{Kept, make as build};\npub use std::fmt::Debug;\nmod hidden { pub fn nobody() {} }";
    let inner = "pub struct Kept { pub name: String, secret: u8 }\nimpl Kept { pub fn new(name: &str) -> Self { todo!() } fn own(&self) {} }\npub fn make() {}\n#[cfg(test)] mod tests { }";
    let shown = "use crate::inner::Kept;\nimpl Clone for Kept { fn clone(&self) -> Self { todo!() } }\n#[non_exhaustive] pub enum Kind { A, B(u8) }\npub trait Port: Send { fn carry(&self, kind: Kind) -> bool; fn known() {} }";
    let listing = |inner: &str, shown: &str| {
        let (inner, shown) = (inner.to_owned(), shown.to_owned());
        Listing::of(&move |file| match file {
            "lib.rs" => Some(lib.to_owned()),
            "inner.rs" => Some(inner.clone()),
            "shown.rs" => Some(shown.clone()),
            _ => None,
        })
        .text()
    };
    let before = listing(inner, shown);
    assert_eq!(
        before,
        "Debug: pub use std::fmt::Debug\nKept.fn new(name: &str) -> Self\nKept.name: String\nKept: impl Clone for Kept\n\
         Kept: struct\nbuild: fn make()\nshown: mod\nshown::Kind.A {}\nshown::Kind.B {0: u8}\n\
         shown::Kind: #[non_exhaustive] enum\nshown::Port.fn carry(&self, kind: Kind) -> bool\n\
         shown::Port.fn known() {}\nshown::Port: trait: Send\n"
    );
    for (from, to) in [("name: &str", "name: String"), ("pub name", "name"), ("fn make()", "async fn make()")] {
        assert_ne!(listing(&inner.replace(from, to), shown), before, "{from}");
    }
    for (from, to) in
        [("B(u8)", "B(u16)"), ("-> bool", "-> u8"), ("#[non_exhaustive] ", ""), ("impl Clone", "impl Copy")]
    {
        assert_ne!(listing(inner, &shown.replace(from, to)), before, "{from}");
    }
    for (from, to) in [("fn own(&self)", "fn own(self)"), ("secret: u8", "secret: u16")] {
        assert_eq!(listing(&inner.replace(from, to), shown), before, "{from} is nobody's business");
    }
}

/// Checks the attributes that mark tests, among them conditions that are lists.
#[test]
fn only_conditions_of_tests_leave_out() {
    let attribute = |text: &str| -> Vec<Attribute> {
        let file = parse_file(&format!("{text} struct A;")).expect("a struct");
        match &file.items[0] {
            Item::Struct(item) => item.attrs.clone(),
            _ => Vec::new(),
        }
    };
    assert!(is_of_tests(&attribute("#[cfg(test)]")));
    assert!(is_of_tests(&attribute("#[cfg(all(test, unix))]")));
    assert!(!is_of_tests(&attribute("#[cfg(feature = \"testing\")]")));
    assert!(matches!(attribute("#[cfg(test)]")[0].meta, Meta::List(_)));
}
