//! Waiting for what lasts: a call or a Question, by the Feed of its Conversation.

use crate::desk::{Desk, Heard};
use crate::error::{Error, patiently};
use async_trait::async_trait;
use loopd_protocol::{ConversationId, Event, HarnessCall, Question};

/// What changes until it is over.
#[async_trait]
pub(crate) trait Lasting: Sized + Send {
    /// Where its events are told.
    fn conversation(&self) -> ConversationId;

    /// Whether nothing of it changes any more.
    fn is_over(&self) -> bool;

    /// As it is now.
    async fn look(&self, desk: &dyn Desk) -> Result<Self, Error>;

    /// As the event says that it is, if it is about it.
    fn told(&self, event: Event) -> Option<Self>;

    /// Waits until it is over.
    async fn last(&mut self, desk: &dyn Desk) -> Result<(), Error> {
        if self.is_over() {
            return Ok(());
        }
        let mut ear = desk.listen(&format!("conversation/{}", self.conversation())).await?;
        while let Some(heard) = ear.hear().await? {
            match heard {
                Heard::Here => *self = self.look(desk).await?,
                Heard::Event(event) => match self.told(event.event) {
                    Some(told) => *self = told,
                    None => continue,
                },
            }
            if self.is_over() {
                return Ok(());
            }
        }
        *self = self.look(desk).await?;
        Ok(())
    }
}

#[async_trait]
impl Lasting for HarnessCall {
    fn conversation(&self) -> ConversationId {
        self.conversation
    }

    fn is_over(&self) -> bool {
        self.phase.is_final()
    }

    async fn look(&self, desk: &dyn Desk) -> Result<Self, Error> {
        patiently(|| desk.call(self.id)).await
    }

    fn told(&self, event: Event) -> Option<Self> {
        match event {
            Event::Call { call } if call.id == self.id => Some(*call),
            _ => None,
        }
    }
}

#[async_trait]
impl Lasting for Question {
    fn conversation(&self) -> ConversationId {
        self.conversation
    }

    fn is_over(&self) -> bool {
        self.status.is_final()
    }

    async fn look(&self, desk: &dyn Desk) -> Result<Self, Error> {
        patiently(|| desk.question(self.id)).await
    }

    fn told(&self, event: Event) -> Option<Self> {
        match event {
            Event::Question { question } if question.id == self.id => Some(*question),
            _ => None,
        }
    }
}
