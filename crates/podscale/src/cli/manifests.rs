//! Files with objects in them, as commands are given them: by name, by folder, on standard input.

use clap::Args;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file.
const MOST_BYTES: u64 = 16 << 20;
/// The most files of one call.
const MOST_FILES: usize = 100_000;
/// How the names of files in folders end.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Which files.
#[derive(Clone, Debug, Args)]
#[group(id = "manifests")]
pub struct Arguments {
    /// Files with YAML or JSON, with one or more documents each, or folders of them; `-` is standard input.
    #[arg(short, long = "filename", required = true, value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,

    /// Read folders recursively.
    #[arg(short = 'R', long)]
    recursive: bool,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// As messages name it.
    pub(super) name: String,
    /// What it says.
    pub(super) text: String,
}

/// A file or folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub(super) struct ManifestError {
    path: PathBuf,
    source: io::Error,
}

/// Reads all files, those of a folder in the order of their names.
pub(super) fn read(arguments: &Arguments) -> (Vec<Manifest>, Vec<ManifestError>) {
    let (mut manifests, mut errors) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let files = match path.is_dir() {
            true => files_of(path, arguments.recursive),
            false => Ok(vec![path.clone()]),
        };
        let files = files.unwrap_or_else(|source| {
            errors.push(ManifestError { path: path.clone(), source });
            Vec::new()
        });
        for file in files {
            match read_file(&file) {
                Ok(text) => manifests.push(Manifest { name: file.display().to_string(), text }),
                Err(source) => errors.push(ManifestError { path: file, source }),
            }
        }
    }
    (manifests, errors)
}

fn files_of(folder: &Path, recursive: bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            // Links to folders are not followed, so that there is an end.
            if entry.file_type()?.is_dir() {
                folders.extend(recursive.then_some(path));
            } else if path.extension().and_then(OsStr::to_str).is_some_and(is_manifest) {
                found.push(path);
            }
            if found.len() > MOST_FILES {
                return Err(io::Error::other(format!("more than {MOST_FILES} files")));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn is_manifest(ending: &str) -> bool {
    ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)
    } else {
        File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)
    };
    match read? {
        size if size as u64 == MOST_BYTES => Err(io::Error::other("too large")),
        _ => Ok(text),
    }
}
