//! The modules of a crate import each other one way: no cycle, and in those that
//! state an order from the end of the list in their `lib.rs` to its beginning.

use crate::rust::{is_word, shipped};
use crate::{none, root, shipped_sources};
use std::collections::{BTreeMap, BTreeSet};

/// Where modules are looked at: a crate, and a module of it whose children are compared; the crate's
/// own modules if it is empty.
const PLACES: [(&str, &str); 11] = [
    ("podscale-core", ""),
    ("podscale-api", ""),
    ("podscale-sim", ""),
    ("podscale-metrics", ""),
    ("podscale-scalers", ""),
    ("podscale-client", ""),
    ("podscale-apiserver", ""),
    ("podscale-cluster", ""),
    ("podscale-controller", ""),
    ("podscale-controller", "controller"),
    ("podscale", ""),
];

/// Those whose modules have an order.
const ORDERED: [&str; 2] = ["podscale-controller", "podscale"];

/// Who imports whom, with the file that does.
type Imports = BTreeMap<(String, String), String>;

#[test]
fn modules_form_no_cycle() {
    let mut found = Vec::new();
    for (name, parent) in PLACES {
        let imports = imports(name, parent);
        if let Some(cycle) = cycle(&imports) {
            let file = |edge: &[String]| imports[&(edge[0].clone(), edge[1].clone())].clone();
            let files: Vec<String> = cycle.windows(2).map(file).collect();
            found.push(format!("{name}: {}; in {}", cycle.join(" → "), files.join(", ")));
        }
    }
    none("cycles of modules", &found);
}

#[test]
fn modules_keep_their_order() {
    let mut found = Vec::new();
    for name in ORDERED {
        let layers = layers(name);
        let layer = |module: &str| layers.iter().position(|layer| layer.contains(module));
        for ((from, to), file) in imports(name, "") {
            if from != "lib" && layer(&to) >= layer(&from) {
                found.push(format!("{from} imports {to}, in {file}"));
            }
        }
    }
    none("imports against the order of their crate's lib.rs", &found);
}

/// The modules of a crate in the order of its `lib.rs`; blank lines part those that do not know each other.
fn layers(name: &str) -> Vec<BTreeSet<String>> {
    let path = root().join(format!("crates/{name}/src/lib.rs"));
    let text = shipped(&std::fs::read_to_string(path).expect("lib.rs"));
    let groups = text.split("\n\n").map(|group| declared(group).into_iter().collect());
    groups.filter(|layer: &BTreeSet<String>| !layer.is_empty()).collect()
}

/// The modules that are declared in a piece of code and have files of their own.
fn declared(code: &str) -> Vec<String> {
    let words = code.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let modules = words
        .filter_map(|line| line.strip_prefix("mod ").or(line.split_once(" mod ").map(|m| m.1)));
    modules.map(str::to_owned).collect()
}

/// Who imports whom among the children of a module. The module itself, or `lib`, imports all of its
/// children, so none of them may import anything from it.
fn imports(name: &str, parent: &str) -> Imports {
    let mut imports = Imports::new();
    let within: Vec<&str> = parent.split('/').filter(|part| !part.is_empty()).collect();
    let top = within.last().copied().unwrap_or("lib");
    let prefix = format!("crates/{name}/src/");
    let of_crate: Vec<(String, String)> = shipped_sources()
        .into_iter()
        .filter_map(|(file, text)| Some((file.strip_prefix(&prefix)?.to_owned(), text)))
        .collect();
    let modules: Vec<Vec<String>> = of_crate.iter().map(|(file, _)| module(file)).collect();
    let children: BTreeSet<&String> =
        modules.iter().filter_map(|module| below(module, &within)?.first()).collect();
    for ((file, text), module) in of_crate.iter().zip(&modules) {
        let Some(place) = below(module, &within).filter(|_| file != "main.rs") else { continue };
        let code = shipped(text);
        let mut import = |from: &str, to: &str| {
            imports.insert((from.to_owned(), to.to_owned()), format!("{prefix}{file}"));
        };
        let Some(from) = place.first() else {
            declared(&code).iter().for_each(|to| import(top, to));
            continue;
        };
        for path in paths(&code, module) {
            let Some(path) = path.strip_prefix(within.as_slice()) else { continue };
            let to = path.first().and_then(|to| children.iter().find(|child| **child == to));
            let to = to.map_or(top, |to| to.as_str());
            if to != from {
                import(from, to);
            }
        }
    }
    imports
}

/// The module of a file, as a path from the crate's root.
fn module(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    path.split('/').filter(|part| *part != "lib").map(str::to_owned).collect()
}

/// The rest of a module's path below another module, if it is that one or within it.
fn below<'a>(module: &'a [String], within: &[&str]) -> Option<&'a [String]> {
    let (start, rest) = module.split_at_checked(within.len())?;
    start.iter().eq(within).then_some(rest)
}

/// All paths in a module that begin with `crate`, `super` or `self`, from the crate's root.
fn paths<'a>(code: &'a str, module: &'a [String]) -> Vec<Vec<&'a str>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = tokens.get(at + 1) == Some(&"::")
            && (at == 0 || !["::", "in"].contains(&tokens[at - 1]));
        let base = match tokens[at] {
            "crate" if begins => Some(0),
            "self" if begins => Some(module.len()),
            "super" if begins => Some(module.len().saturating_sub(1)),
            _ => None,
        };
        at += 1;
        if let Some(mut length) = base {
            while tokens.get(at) == Some(&"::") && tokens.get(at + 1) == Some(&"super") {
                (at, length) = (at + 2, length.saturating_sub(1));
            }
            let start = module[..length].iter().map(String::as_str).collect();
            tree(&tokens, &mut at, start, &mut found);
        }
    }
    found
}

/// Follows a tree of paths from a `::` on.
fn tree<'a>(
    tokens: &[&'a str],
    at: &mut usize,
    mut path: Vec<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) {
    while tokens.get(*at) == Some(&"::") {
        *at += 1;
        match tokens.get(*at) {
            Some(&"{") => {
                while !["}", ";"].contains(tokens.get(*at).unwrap_or(&";")) {
                    *at += 1;
                    let Some(first) = tokens.get(*at).filter(|t| t.starts_with(is_word)) else {
                        continue;
                    };
                    *at += 1;
                    let mut branch = path.clone();
                    branch.extend((*first != "self").then_some(first));
                    tree(tokens, at, branch, found);
                    while ![",", "}", ";"].contains(tokens.get(*at).unwrap_or(&";")) {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            Some(name) if name.starts_with(is_word) => {
                path.push(name);
                *at += 1;
            }
            _ => break,
        }
    }
    found.push(path);
}

/// Names, `::` and single signs.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

/// A way from a module back to itself, if there is one.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    let modules: BTreeSet<&String> = imports.keys().map(|(from, _)| from).collect();
    let mut done = BTreeSet::new();
    modules.into_iter().find_map(|module| walk(module, imports, &mut Vec::new(), &mut done))
}

fn walk<'a>(
    module: &'a String,
    imports: &'a Imports,
    way: &mut Vec<String>,
    done: &mut BTreeSet<&'a String>,
) -> Option<Vec<String>> {
    if let Some(start) = way.iter().position(|seen| seen == module) {
        return Some(way[start..].iter().chain([module]).cloned().collect());
    }
    if done.contains(module) {
        return None;
    }
    way.push(module.clone());
    for (_, to) in imports.keys().filter(|(from, _)| from == module) {
        if let Some(cycle) = walk(to, imports, way, done) {
            return Some(cycle);
        }
    }
    way.pop();
    done.insert(module);
    None
}

#[test]
fn imports_are_found_in_all_their_forms() {
    let code = "use crate::a::B;\nuse super::{c::{D, e::F}, self};\npub(in crate::g) fn h() { crate::i::j(super::super::k()) }";
    let module = ["x".to_owned(), "y".to_owned()];
    let found: Vec<String> = paths(code, &module).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::B", "x::c::D", "x::c::e::F", "x", "i::j", "k"]);
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), "file".to_owned());
    let acyclic = [edge("a", "b"), edge("a", "c"), edge("b", "c")];
    assert_eq!(cycle(&acyclic.clone().into()), None);
    let cyclic: Imports = acyclic.into_iter().chain([edge("c", "b")]).collect();
    assert_eq!(cycle(&cyclic), Some(["b", "c", "b"].map(str::to_owned).into()));
}
