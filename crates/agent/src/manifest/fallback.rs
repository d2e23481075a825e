//! `spec.fallbacks`: the models that take over in the middle of a Run.

use super::Model;
use loopd_kernel::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model that takes over when the one before it cannot be used. It stays until the Run ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with model and, if wanted, on")]
pub struct Fallback {
    /// The model.
    pub model: Model,
    /// What makes it take over, once the attempts of a call are used up; without it, that the model before it cannot be
    /// had: `rateLimited`, `unavailable`, `interrupted` and `malformed`.
    #[serde(default = "Trouble::availability")]
    #[schemars(extend("minItems" = 1))]
    pub on: Vec<Trouble>,
}

/// Why a call of a model came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// Too many requests.
    RateLimited,
    /// Not reached, or overloaded.
    Unavailable,
    /// The answer broke off, took too long, or was lost with its worker.
    Interrupted,
    /// The answer was none.
    Malformed,
    /// The conversation does not fit.
    TooLarge,
    /// The model, or its provider's filter, refused.
    Refused,
    /// The key is missing, wrong, or may not use the model.
    Unauthorised,
}

impl Trouble {
    fn availability() -> Vec<Self> {
        vec![Self::RateLimited, Self::Unavailable, Self::Interrupted, Self::Malformed]
    }

    /// What a failed call of a model met, when it is something that another model may not meet. A request that is wrong
    /// stays wrong.
    #[must_use]
    pub fn of(failure: &Failure) -> Option<Self> {
        match failure.code.as_str() {
            "model.rate_limited" => Some(Self::RateLimited),
            "model.unavailable" => Some(Self::Unavailable),
            // The call was lost too often: another model may answer at once.
            "model.interrupted" | "model.attempts" | "call.lost" => Some(Self::Interrupted),
            "model.malformed" => Some(Self::Malformed),
            "model.too_large" => Some(Self::TooLarge),
            "model.unauthorised" => Some(Self::Unauthorised),
            _ => None,
        }
    }
}
