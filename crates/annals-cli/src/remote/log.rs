//! The log of a server, on standard error.

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

/// How much of what happens is logged.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Detail {
    /// Nothing
    Off,
    /// What went wrong here
    Error,
    /// Also what may go wrong
    Warn,
    /// Also each request, with its status and duration
    Info,
    /// Also what the engine does: commits, backfills
    Debug,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// An object a line
    Json,
}

/// The options about the log.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// How much is logged on standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: Detail,
    /// The form of the log's lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
}

impl Log {
    /// Begins to log.
    pub(crate) fn start(&self) {
        let level = match self.log_level {
            Detail::Off => LevelFilter::OFF,
            Detail::Error => LevelFilter::ERROR,
            Detail::Warn => LevelFilter::WARN,
            Detail::Info => LevelFilter::INFO,
            Detail::Debug => LevelFilter::DEBUG,
        };
        let ours = tracing_subscriber::filter::Targets::new()
            .with_target("annals", level)
            .with_target("annals_server", level);
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        let lines = match self.log_format {
            Format::Text => lines.boxed(),
            Format::Json => lines.json().boxed(),
        };
        // One that began before goes on.
        let _ = tracing_subscriber::registry().with(lines.with_filter(ours)).try_init();
    }
}
