//! `podscale replay`: decides recordings anew and says whether the decisions agree.

use crate::cli::print_error;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use podscale_api::recording::{Line, RecordingError, RecordingReader};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;

mod judge;
mod report;

use judge::{Judged, Selection, judge};
use report::{Format, Report};

/// Decide recordings again and compare.
///
/// Every step of every recording is decided again from its inputs, and the outcome is compared with the
/// recorded one: replicas, rescaled, error, statusWritten, the whole status and the events in order; for a
/// ScaledJob, how many Jobs were created, the status and the events. The last line says how many decisions
/// agree.
///
/// Exit codes: 0 if all agree, 1 if not, 2 if something could not be read or nothing was selected.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Recordings, one JSON object per line, plain or gzip; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Explain each step in words.
    #[arg(long)]
    explain: bool,

    /// Only recordings with this name, or of this autoscaler, as in shop/web; repeatable.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Only this step, counted from 0; the steps before it are decided but not shown.
    #[arg(long, value_name = "N")]
    step: Option<usize>,

    /// Text for people, or one JSON object per line for programs.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: OutputFormat,

    /// How many cores to use; all if not given.
    #[arg(long, value_name = "N", env = "PODSCALE_JOBS")]
    jobs: Option<std::num::NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutputFormat {
    /// Readable lines.
    Text,
    /// One JSON object per line: a `Step` for each step shown, a `Summary` at the end.
    Json,
}

/// Lines are handed out in batches, so that cores are busy and memory stays bounded.
const BATCH: usize = 64;
/// How many batches may wait to be worked on.
const WAITING_BATCHES: usize = 2;

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let threads = arguments.jobs.map_or(0, std::num::NonZeroUsize::get);
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => {
            print_error(format_args!("cannot start worker threads: {error}"));
            return ExitCode::from(2);
        }
    };
    let format = match arguments.output {
        OutputFormat::Text => Format::Text,
        OutputFormat::Json => Format::Json,
    };
    let out = BufWriter::new(io::stdout().lock());
    let mut report = Report::new(out, format, arguments.explain);
    match replay_all(arguments, &pool, &mut report) {
        Ok(code) => code,
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("cannot write the answer: {error}"));
            ExitCode::from(2)
        }
    }
}

fn replay_all(
    arguments: &Arguments,
    pool: &ThreadPool,
    report: &mut Report<impl Write>,
) -> io::Result<ExitCode> {
    let selection =
        Selection { names: &arguments.names, step: arguments.step, explain: arguments.explain };
    let mut unreadable = false;
    for path in &arguments.files {
        if let Err(error) = replay_file(path, &selection, pool, report) {
            match error {
                FileError::Answer(error) => return Err(error),
                FileError::Input(message) => print_error(message),
            }
            unreadable = true;
        }
    }
    unreadable |= report.unreadable_lines > 0;
    let nothing = report.recordings == 0 && !unreadable;
    report.finish()?;
    if nothing {
        print_error(match arguments.names.as_slice() {
            [] => "no recording in what was given".to_owned(),
            names => format!("no recording is called {}", names.join(" or ")),
        });
    } else if report.selected_steps == 0 && !unreadable {
        let step = arguments.step.unwrap_or_default();
        print_error(format_args!("no recording has a step {step}"));
    }
    Ok(if unreadable || nothing || report.selected_steps == 0 {
        ExitCode::from(2)
    } else if report.all_agree() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

enum FileError {
    Input(String),
    Answer(io::Error),
}

fn replay_file(
    path: &Path,
    selection: &Selection<'_>,
    pool: &ThreadPool,
    report: &mut Report<impl Write>,
) -> Result<(), FileError> {
    let name = if path == Path::new("-") { "stdin".into() } else { path.display().to_string() };
    let describe = |error: io::Error| FileError::Input(format!("{name}: {error}"));
    let (input, bar) = open(path).map_err(describe)?;
    let reader = RecordingReader::new(input).map_err(describe)?;
    std::thread::scope(|scope| {
        let (sender, batches) = sync_channel(WAITING_BATCHES);
        scope.spawn(move || read_batches(reader, |batch| sender.send(batch).is_ok()));
        for batch in batches {
            judge_batch(&name, batch, selection, pool, report, &bar)?;
        }
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

fn judge_batch(
    name: &str,
    batch: Vec<Result<Line, RecordingError>>,
    selection: &Selection<'_>,
    pool: &ThreadPool,
    report: &mut Report<impl Write>,
    bar: &ProgressBar,
) -> Result<(), FileError> {
    let judge_line = |line: Result<Line, RecordingError>| Ok(judge(&line?.parse_any()?, selection));
    let judged: Vec<Result<Option<Judged>, RecordingError>> =
        pool.install(|| batch.into_par_iter().map(judge_line).collect());
    for result in judged {
        match result {
            Ok(Some(judged)) => {
                bar.suspend(|| report.add(&judged)).map_err(FileError::Answer)?;
            }
            Ok(None) => {}
            Err(error) => {
                report.unreadable_lines += 1;
                bar.suspend(|| print_error(format_args!("{name}: {error}")));
            }
        }
    }
    Ok(())
}

/// Reads lines and sends them on in batches until the input ends or nobody wants more.
fn read_batches<R: Read>(
    mut reader: RecordingReader<R>,
    mut send: impl FnMut(Vec<Result<Line, RecordingError>>) -> bool,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(line) = reader.next_line().transpose() {
        batch.push(line);
        if batch.len() == BATCH && !send(std::mem::take(&mut batch)) {
            return;
        }
    }
    send(batch);
}

/// The input, and a bar that shows how much of it has been read if somebody is watching.
fn open(path: &Path) -> io::Result<(Box<dyn Read + Send>, ProgressBar)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), ProgressBar::hidden()));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let bar = if io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {bytes}/{total_bytes}");
        ProgressBar::new(length)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(path.display().to_string())
    } else {
        ProgressBar::hidden()
    };
    Ok((Box::new(bar.wrap_read(file)), bar))
}
