//! How a Run ends: a closed set. No variant may be added without every reader deciding what it means,
//! which is why [`Outcome`] is exhaustive.

use crate::budget::{Breach, Ledger};
use crate::failure::Failure;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// How a Run ended, with the evidence. `O` is the typed output, or its JSON text.
#[must_use = "an outcome says whether the work was done"]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome<O = String> {
    /// The Loop finished.
    Completed {
        /// What it returned.
        output: O,
    },
    /// A limit was reached. Parked: raising the limit goes on.
    BudgetExceeded {
        /// Which limit, and by how much.
        breach: Breach,
    },
    /// It went in circles. Parked.
    Stuck {
        /// The repeated window.
        stall: Stall,
    },
    /// Somebody or something stopped it. Cancelled is sealed, everything else parked.
    Interrupted {
        /// Who, and why.
        interrupt: Interrupt,
    },
    /// Policy forbade what it needs.
    PolicyDenied {
        /// The rule and its inputs.
        denial: Denial,
    },
    /// The Loop failed.
    Failed {
        /// What happened.
        failure: Failure,
    },
}

/// Why a Run is stuck.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Which signal was raised.
    pub signal: String,
    /// The repeated window, in words.
    pub evidence: String,
}

/// Who or what interrupted a Run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Interrupt {
    /// Somebody cancelled it. Sealed.
    Cancelled {
        /// Who.
        actor: String,
        /// Why, in their words.
        reason: String,
    },
    /// The process shut down. Parked.
    Shutdown,
    /// Something is in doubt and a person has to look. Parked.
    InDoubt {
        /// What.
        reason: String,
    },
    /// It broke its worker repeatedly: a panic, or crash recoveries without progress. Parked.
    Poisoned {
        /// The panic's text, or the count of recoveries.
        reason: String,
    },
}

/// Why policy denied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    /// The rule.
    pub rule: String,
    /// What it saw.
    pub inputs: String,
}

/// Whether a Run that has an outcome can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finality {
    /// Sealed for good.
    Ended,
    /// Can be reopened by a recorded decision.
    Parked,
}

impl<O> Outcome<O> {
    /// Sealed or reopenable.
    #[must_use]
    pub const fn finality(&self) -> Finality {
        match self {
            Self::Completed { .. } | Self::PolicyDenied { .. } | Self::Failed { .. } => Finality::Ended,
            Self::BudgetExceeded { .. } | Self::Stuck { .. } => Finality::Parked,
            Self::Interrupted { interrupt } => match interrupt {
                Interrupt::Cancelled { .. } => Finality::Ended,
                Interrupt::Shutdown | Interrupt::InDoubt { .. } | Interrupt::Poisoned { .. } => Finality::Parked,
            },
        }
    }

    /// The name as it is written everywhere.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "Completed",
            Self::BudgetExceeded { .. } => "BudgetExceeded",
            Self::Stuck { .. } => "Stuck",
            Self::Interrupted { .. } => "Interrupted",
            Self::PolicyDenied { .. } => "PolicyDenied",
            Self::Failed { .. } => "Failed",
        }
    }

    /// The same outcome with its output converted.
    ///
    /// # Errors
    /// Whatever `convert` returns.
    pub fn try_map<P, E>(self, convert: impl FnOnce(O) -> Result<P, E>) -> Result<Outcome<P>, E> {
        Ok(match self {
            Self::Completed { output } => Outcome::Completed { output: convert(output)? },
            Self::BudgetExceeded { breach } => Outcome::BudgetExceeded { breach },
            Self::Stuck { stall } => Outcome::Stuck { stall },
            Self::Interrupted { interrupt } => Outcome::Interrupted { interrupt },
            Self::PolicyDenied { denial } => Outcome::PolicyDenied { denial },
            Self::Failed { failure } => Outcome::Failed { failure },
        })
    }
}

impl Outcome {
    /// The output, which is a body of its own, and the outcome without it.
    pub(crate) fn split(self) -> (String, Self) {
        match self {
            Self::Completed { output } => (output, Self::Completed { output: String::new() }),
            Self::BudgetExceeded { .. }
            | Self::Stuck { .. }
            | Self::Interrupted { .. }
            | Self::PolicyDenied { .. }
            | Self::Failed { .. } => (String::new(), self),
        }
    }

    /// The outcome with its output put back.
    pub(crate) fn join(self, body: String) -> Self {
        match self {
            Self::Completed { .. } => Self::Completed { output: body },
            Self::BudgetExceeded { .. }
            | Self::Stuck { .. }
            | Self::Interrupted { .. }
            | Self::PolicyDenied { .. }
            | Self::Failed { .. } => self,
        }
    }
}

/// An outcome together with what the Run consumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ending {
    /// How it ended; the output is JSON text.
    pub outcome: Outcome,
    /// What it consumed.
    pub ledger: Ledger,
}
