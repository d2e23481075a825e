//! What goes wrong, as a person needs it: what, why, how to fix; and how the process ends.

use loopd_assemble::Obstacle;
use loopd_store::StoreError;
use std::fmt;
use std::process::ExitCode;

/// What the process tells its caller. The numbers are those of `loopctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It was done; a server was asked to stop.
    Done,
    /// It failed.
    Failed,
    /// The command line or the settings are wrong. Nothing was started.
    Usage,
    /// Somebody else has what this needs.
    Conflict,
    /// It was told to stop twice, and did not wait.
    Signalled,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Conflict => 8,
            Exit::Signalled => 130,
        })
    }
}

/// Why the server does not start, or went down.
#[derive(Debug)]
pub struct Trouble {
    /// How the process ends.
    pub exit: Exit,
    what: String,
    why: Option<String>,
    fix: Option<String>,
}

impl Trouble {
    /// A trouble of which nothing but what happened is known.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), why: None, fix: None }
    }

    /// With the reason.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// With what to do.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loopd: {}", self.what)?;
        for (name, text) in [("why", &self.why), ("fix", &self.fix)] {
            if let Some(text) = text {
                write!(f, "\n  {name}: {}", text.replace('\n', "\n       "))?;
            }
        }
        Ok(())
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::DriverElsewhere(_) => Self::new(Exit::Conflict, "another process drives this store")
                .why("a server, or a `loopctl run` or `agent chat`, is at work on it; one at a time may be")
                .fix("end that one first, or start over another folder with --data DIR"),
            StoreError::TooNew { .. } => {
                Self::new(Exit::Failed, text).fix("start the release that wrote it, or a newer")
            }
            StoreError::Corrupt(_) => {
                Self::new(Exit::Failed, text).fix("`loopctl store verify` says what is affected; restore a backup")
            }
            StoreError::Full(_) => Self::new(Exit::Failed, text).fix("make room, and start again: nothing is lost"),
            StoreError::Conflict(_)
            | StoreError::Fenced(_)
            | StoreError::Ambiguous(_)
            | StoreError::Unavailable(_)
            | StoreError::ClientOnly => Self::new(Exit::Failed, text),
        }
    }
}

impl From<loopd_platform::Error> for Trouble {
    fn from(error: loopd_platform::Error) -> Self {
        match error {
            loopd_platform::Error::Store(error) => error.into(),
            error @ (loopd_platform::Error::NotFound { .. }
            | loopd_platform::Error::Forbidden(_)
            | loopd_platform::Error::Invalid { .. }
            | loopd_platform::Error::Conflict { .. }
            | loopd_platform::Error::Busy { .. }
            | loopd_platform::Error::TooLarge { .. }) => Self::new(Exit::Usage, error.to_string()),
        }
    }
}

impl From<Obstacle> for Trouble {
    fn from(obstacle: Obstacle) -> Self {
        Self { exit: Exit::Usage, what: obstacle.what, why: obstacle.why, fix: obstacle.fix }
    }
}
