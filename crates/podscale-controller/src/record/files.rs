//! The files of Recordings: one grows until it is large or old, then the next begins; the oldest go
//! once all together are too large or too old.

use jiff::Timestamp;
use podscale_api::recording::{Recorded, RecordingWriter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PREFIX: &str = "podscale-";
const SUFFIX: &str = ".jsonl.gz";
/// Each file takes up to one of so many parts of what all may take.
const FILES: u32 = 10;

/// How much is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes all files together may have.
    pub bytes: u64,
    /// How old a file may become.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 1024 * 1024 * 1024, age: Duration::from_secs(7 * 24 * 3600) }
    }
}

pub(super) struct Files {
    folder: PathBuf,
    limits: Limits,
    current: Option<Current>,
}

struct Current {
    path: PathBuf,
    file: File,
    began: SystemTime,
    bytes: u64,
}

impl Files {
    /// Makes the folder, and finds out whether files can be written there. A file begins with its
    /// first Recording, so that no program ever finds an empty one, which is not valid gzip.
    pub(super) fn open(folder: &Path, limits: Limits) -> io::Result<Files> {
        fs::create_dir_all(folder)?;
        let probe = folder.join(format!(".podscale-probe-{}", std::process::id()));
        File::create(&probe)?;
        fs::remove_file(&probe)?;
        Ok(Files { folder: folder.to_owned(), limits, current: None })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes Recordings as a gzip member of their own, so that the file can be read at any time, even
    /// if nothing is ever written after them.
    pub(super) fn write(&mut self, recordings: &[impl Recorded]) -> io::Result<()> {
        let mut writer = RecordingWriter::gzip(Vec::new());
        recordings.iter().try_for_each(|recording| writer.write(recording))?;
        let bytes = writer.finish()?;
        let now = SystemTime::now();
        let (most, oldest) = (self.limits.bytes / u64::from(FILES), self.limits.age / FILES);
        let begin_next = |current: &Current| {
            let age = now.duration_since(current.began).unwrap_or_default();
            current.bytes.saturating_add(bytes.len() as u64) > most || age > oldest
        };
        let mut current = match self.current.take() {
            Some(current) if !begin_next(&current) => current,
            _ => self.create(now)?,
        };
        if let Err(error) = current.file.write_all(&bytes) {
            current.undo();
            return Err(error);
        }
        current.bytes = current.bytes.saturating_add(bytes.len() as u64);
        self.current = Some(current);
        self.prune(now)
    }

    /// Creates the next file, under a name that sorts after those before it.
    fn create(&self, now: SystemTime) -> io::Result<Current> {
        let time = Timestamp::try_from(now).map_err(io::Error::other)?;
        let name = format!("{PREFIX}{}{SUFFIX}", time.strftime("%Y%m%dT%H%M%S%.6fZ"));
        let path = self.folder.join(name);
        let file = File::options().append(true).create_new(true).open(&path)?;
        Ok(Current { path, file, began: now, bytes: 0 })
    }

    /// Removes the oldest files until the rest is within the limits.
    fn prune(&self, now: SystemTime) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let ours = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
            if ours {
                let about = entry.metadata()?;
                found.push((name, entry.path(), about.len(), about.modified().unwrap_or(now)));
            }
        }
        found.sort();
        let mut total: u64 = found.iter().map(|(.., bytes, _)| bytes).sum();
        // The newest is being written.
        found.pop();
        for (_, path, bytes, modified) in found {
            let age = now.duration_since(modified).unwrap_or_default();
            if total > self.limits.bytes || age > self.limits.age {
                fs::remove_file(path)?;
                total = total.saturating_sub(bytes);
            }
        }
        Ok(())
    }
}

impl Current {
    /// Removes what a failed write left behind: half a member would make the file unreadable.
    fn undo(self) {
        let undone = match self.bytes {
            0 => fs::remove_file(&self.path),
            bytes => self.file.set_len(bytes),
        };
        if let Err(error) = undone {
            tracing::warn!(%error, "{} ends in half a line", self.path.display());
        }
    }
}
