//! Handles of Questions: they are rebuilt from an id, and own nothing.

use crate::desk::Desk;
use crate::error::{Error, patiently};
use crate::lasting::Lasting;
use loopd_protocol::{AskKind, Question, QuestionId, QuestionStatus};
use serde_json::Value;
use std::sync::Arc;

/// A Question that was asked, as it was when it was last looked at.
#[derive(Debug, Clone)]
pub struct Asked {
    desk: Arc<dyn Desk>,
    state: Question,
}

impl Asked {
    /// The Question with this id.
    ///
    /// # Errors
    /// [`Error::Refused`] `not_found`.
    pub async fn of(desk: Arc<dyn Desk>, id: QuestionId) -> Result<Self, Error> {
        let state = patiently(|| desk.question(id)).await?;
        Ok(Self { desk, state })
    }

    pub(crate) const fn known(desk: Arc<dyn Desk>, state: Question) -> Self {
        Self { desk, state }
    }

    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> QuestionId {
        self.state.id
    }

    /// As it was when it was last looked at.
    #[must_use]
    pub const fn state(&self) -> &Question {
        &self.state
    }

    /// Whether nothing of it changes any more.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.status.is_final()
    }

    /// What a person answered; nothing for a Question that ended otherwise, and for a Confirm.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        let answered = self.state.status == QuestionStatus::Answered;
        self.state.answer.as_ref().filter(|_| answered).and_then(|answer| answer.value.as_ref())
    }

    /// The answer as text: of a JSON value what it is written as.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.value().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// Whether it is a Confirm that a person has accepted. Nothing else is consent.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.state.kind == AskKind::Confirm && self.state.status == QuestionStatus::Answered
    }

    /// Looks at it again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn look(&mut self) -> Result<&Question, Error> {
        self.state = self.state.look(&*self.desk).await?;
        Ok(&self.state)
    }

    /// Waits until it is over, by its Conversation's Feed. In a Reconcile it is better to return
    /// [`crate::Next::Done`]: the end of the Question wakes the Operator.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait(&mut self) -> Result<&Question, Error> {
        self.state.last(&*self.desk).await?;
        Ok(&self.state)
    }

    /// Takes it back.
    ///
    /// # Errors
    /// [`Error::Conflict`] `question_closed` when it has ended otherwise.
    pub async fn withdraw(&mut self) -> Result<&Question, Error> {
        self.state = patiently(|| self.desk.withdraw(self.state.id)).await?;
        Ok(&self.state)
    }
}
