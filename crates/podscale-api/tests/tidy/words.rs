//! The words of the project are those that Kubernetes and Rust engineers use, and what
//! ARCHITECTURE.md names is there.

use crate::{files, is_tidy, none, root};

/// Private words, and what to say instead.
const WORDS: [(&str, &str); 33] = [
    ("meters", "metrics"),
    ("keeper", "history store"),
    ("rivals", "selector overlap"),
    ("contest", "conflict"),
    ("contested", "conflict"),
    ("shadow", "dry run"),
    ("stance", "ownership"),
    ("happening", "pending event"),
    ("happenings", "pending events"),
    ("hurry", "enqueue now"),
    ("time of the wall", "wall-clock"),
    ("the wall's", "wall-clock"),
    ("look after", "manage"),
    ("looks after", "manages"),
    ("looked after", "managed"),
    ("complain", "report, print an error"),
    ("complains", "reports, prints an error"),
    ("complained", "reported"),
    ("complaint", "error"),
    ("complaints", "errors"),
    ("scene", "fixture, scenario"),
    ("scenes", "fixtures, scenarios"),
    ("door", "connection limit"),
    ("guests", "connections"),
    ("asked wrongly", "usage error"),
    ("in good order", "gracefully"),
    ("processor time", "CPU time"),
    ("theatre", "harness"),
    ("furnish", "set up"),
    ("teach", "commit"),
    ("put off", "withheld"),
    ("seventeenth", "17 times less"),
    ("requests held back", "requests throttled"),
];

/// Where such words are left, and how often: the list may only become shorter.
const KNOWN: [(&str, &str, usize); 3] = [
    // Recordings of before are still read.
    ("crates/podscale-api/src/recording.rs", "put off", 2),
    ("crates/podscale-api/src/recording/tests.rs", "put off", 5),
    ("docs/replay.md", "put off", 2),
];

/// What people read, the program, and what tests and measures it.
fn is_checked(file: &str) -> bool {
    let parts: Vec<&str> = file.split('/').collect();
    match parts[..] {
        ["crates", _, "src" | "tests" | "benches" | "examples", ..] => file.ends_with(".rs"),
        ["docs" | "charts" | "e2e", ..] => !file.ends_with(".jsonl"),
        // What changed was called otherwise before.
        ["CHANGELOG.md"] => false,
        _ => file.ends_with(".md"),
    }
}

#[test]
fn words_are_those_of_others() {
    let mut found = Vec::new();
    for file in files().into_iter().filter(|file| is_checked(file) && !is_tidy(file)) {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        let words = split(&text);
        for (word, instead) in WORDS {
            let known = KNOWN.iter().find(|known| known.0 == file && known.1 == word);
            let expected = known.map_or(0, |known| known.2);
            let count = occurrences(&words, word);
            if count != expected {
                found.push(format!(
                    "{file}: \"{word}\" {count} times, the list has {expected} (say \"{instead}\")"
                ));
            }
        }
    }
    none("private words", &found);
}

/// How often a word, or several in a row, occur: alone or in names, and also where a line ends between
/// them.
fn occurrences(words: &[String], searched: &str) -> usize {
    let searched: Vec<&str> = searched.split(' ').collect();
    words.windows(searched.len()).filter(|window| window.iter().eq(&searched)).count()
}

#[test]
fn words_are_found_over_the_ends_of_lines() {
    let words = split("/// They look\n    /// after `look_after` and LookAfterIt, not lookafter.");
    assert_eq!(occurrences(&words, "look after"), 3);
}

/// The words of a text in small letters; names are taken apart.
fn split(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '\'';
    let names = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    names.flat_map(parts).map(|word| word.to_lowercase()).collect()
}

/// The parts of a name such as `NodeLifecycle`: each begins with a capital after a small letter.
fn parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut small) = (0, false);
    for (at, char) in name.char_indices() {
        if small && char.is_uppercase() {
            parts.push(&name[start..at]);
            start = at;
        }
        small = char.is_lowercase();
    }
    parts.push(&name[start..]);
    parts
}

#[test]
fn what_architecture_names_is_there() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let files = files();
    let named: Vec<&str> =
        text.split('`').skip(1).step_by(2).filter(|name| is_path(name)).collect();
    assert!(named.len() > 50, "only {} paths found", named.len());
    let missing: Vec<String> = named
        .into_iter()
        .filter(|name| !files.iter().any(|file| is_meant(name, file)))
        .map(str::to_owned)
        .collect();
    none("ARCHITECTURE.md names what is not there", &missing);
}

/// Whether what stands between backticks is a path: all with a slash or the ending of a source.
fn is_path(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let ending = [".rs", ".md", ".yaml", ".toml", "/"].iter().any(|ending| name.ends_with(ending));
    name.chars().all(plain)
        && (ending || name.starts_with("crates/") || name.starts_with("podscale-"))
}

/// Whether a path names a file or a folder of files: from the project's root, from its crates, or from
/// the sources of the controller.
fn is_meant(name: &str, file: &str) -> bool {
    let is = |path: &str| {
        let rest = path.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || name.ends_with('/') || rest.starts_with('/'))
    };
    let from = |folder: &str| file.strip_prefix(folder).is_some_and(is);
    from("") || from("crates/") || from("crates/podscale-controller/src/")
}
