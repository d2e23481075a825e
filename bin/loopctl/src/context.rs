//! What every command knows.

use crate::cli::Global;
use crate::output;
use crate::paint::Paint;
use crate::place::Place;
use crate::problem::Problem;
use crate::signals::Signals;
use loopd_kernel::{Digest, TimeMs};
use loopd_providers::Catalogue;
use loopd_runtime::{Clock, Entropy, SystemClock, SystemEntropy};
use std::path::PathBuf;

/// What every command knows.
#[derive(Clone, Debug)]
pub struct Context {
    /// The store.
    pub place: Place,
    /// The file with facts about models.
    pub models: Option<PathBuf>,
    /// Colours of stdout.
    pub paint: Paint,
    /// Colours of stderr.
    pub paint_err: Paint,
    /// Ctrl-C and SIGTERM.
    pub signals: Signals,
    /// Somebody reads the log: nothing that redraws may be mixed into it.
    pub logging: bool,
}

impl Context {
    /// From the options.
    ///
    /// # Errors
    /// [`Problem`] when the store is not named well.
    pub fn new(global: &Global, signals: Signals) -> Result<Self, Problem> {
        Ok(Self {
            place: Place::parse(&global.store)?,
            // A variable that is set to nothing names no file.
            models: global.models.clone().filter(|file| !file.as_os_str().is_empty()),
            paint: Paint::for_stream(global.color, output::stdout_is_terminal()),
            paint_err: Paint::for_stream(global.color, output::stderr_is_terminal()),
            signals,
            logging: global.verbose > 0,
        })
    }

    /// What is known of models: the built-in table and the file that was named.
    ///
    /// # Errors
    /// [`Problem`] when the file does not read, with its line.
    pub fn catalogue(&self) -> Result<Catalogue, Problem> {
        self.models.as_deref().map_or_else(|| Ok(Catalogue::default()), |file| Ok(loopd_assemble::models::read(file)?))
    }

    /// Now.
    pub fn now(&self) -> TimeMs {
        SystemClock.now()
    }

    /// Who is at the keyboard, as far as anybody knows.
    pub fn actor(&self) -> String {
        let user = std::env::var("LOOPD_ACTOR").or_else(|_| std::env::var("USER")).unwrap_or_default();
        if user.trim().is_empty() { "person".into() } else { user.trim().into() }
    }
}

/// A key that nobody else makes.
pub fn fresh_key(purpose: &str) -> String {
    let salt = SystemEntropy::default().salt();
    format!("{purpose}/{}", Digest::sha256(&[&salt]).short())
}
