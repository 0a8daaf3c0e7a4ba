//! The files of Recordings: one grows until it is large or old, then the next begins; the oldest go
//! once all together are too large or too old.

use jiff::Timestamp;
use podscale_api::recording::{Recording, RecordingWriter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PREFIX: &str = "podscale-";
const SUFFIX: &str = ".jsonl.gz";
/// Each file takes up to this share of what all may take.
const SHARE: u32 = 10;

/// How much is kept.
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
    file: File,
    began: SystemTime,
    bytes: u64,
}

impl Files {
    /// Makes the folder, and finds out whether files can be written there.
    pub(super) fn open(folder: &Path, limits: Limits) -> io::Result<Files> {
        fs::create_dir_all(folder)?;
        let mut files = Files { folder: folder.to_owned(), limits, current: None };
        files.roll(SystemTime::now())?;
        Ok(files)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes Recordings as lines that can be read even if nothing is ever written after them.
    pub(super) fn write(&mut self, recordings: &[Recording]) -> io::Result<()> {
        let mut writer = RecordingWriter::gzip(Vec::new());
        recordings.iter().try_for_each(|recording| writer.write(recording))?;
        let bytes = writer.finish()?;
        let now = SystemTime::now();
        let (most, oldest) = (self.limits.bytes / u64::from(SHARE), self.limits.age / SHARE);
        let full = self.current.as_ref().is_none_or(|current| {
            let age = now.duration_since(current.began).unwrap_or_default();
            current.bytes > 0
                && (current.bytes.saturating_add(bytes.len() as u64) > most || age > oldest)
        });
        if full {
            self.roll(now)?;
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        let written = current.file.write_all(&bytes);
        current.bytes = current.bytes.saturating_add(bytes.len() as u64);
        if written.is_err() {
            // Half a line must not be continued.
            self.current = None;
        }
        written?;
        self.prune(now)
    }

    /// Begins another file, under a name that sorts after those before it.
    fn roll(&mut self, now: SystemTime) -> io::Result<()> {
        let time = Timestamp::try_from(now).map_err(io::Error::other)?;
        let name = format!("{PREFIX}{}{SUFFIX}", time.strftime("%Y%m%dT%H%M%S%.6fZ"));
        let file = File::options().append(true).create_new(true).open(self.folder.join(name))?;
        self.current = Some(Current { file, began: now, bytes: 0 });
        Ok(())
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
