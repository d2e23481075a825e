//! Telling: a Message that goes on while it is written.

use crate::desk::Desk;
use crate::error::{Error, patiently};
use loopd_protocol::{Block, BlockOp, End, ErrorNote, Message, MessageId, MessageStatus, Update};
use std::sync::Arc;

/// An open Message of the Operator. It travels by itself, not with the Turn.
///
/// # Guarantees
/// It has one writer, which this value is. A write whose answer is lost is repeated identically by its revision, and done
/// once. After an error the write may be tried again with the same arguments. A process that dies leaves the Message
/// open; [`crate::Cx::tell`] with the same key takes it up where it was, until the platform lets it expire.
#[derive(Debug)]
pub struct Telling {
    desk: Arc<dyn Desk>,
    message: Message,
}

impl Telling {
    pub(crate) const fn new(desk: Arc<dyn Desk>, message: Message) -> Self {
        Self { desk, message }
    }

    /// The Message.
    #[must_use]
    pub const fn id(&self) -> MessageId {
        self.message.id
    }

    /// As the last write left it.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.message.status.is_final()
    }

    /// Adds a Block behind the others.
    ///
    /// # Errors
    /// [`Error::Conflict`] `revision` when there is another writer, `message_final` when it has ended.
    pub async fn push(&mut self, block: Block) -> Result<(), Error> {
        self.write(BlockOp::Push { block }).await
    }

    /// Adds to the text of a Block, counted from 0.
    ///
    /// # Errors
    /// As [`Telling::push`].
    pub async fn append(&mut self, index: u64, text: impl Into<String>) -> Result<(), Error> {
        self.write(BlockOp::Append { index, text: text.into() }).await
    }

    /// Replaces a Block, counted from 0.
    ///
    /// # Errors
    /// As [`Telling::push`].
    pub async fn set(&mut self, index: u64, block: Block) -> Result<(), Error> {
        self.write(BlockOp::Set { index, block }).await
    }

    async fn write(&mut self, op: BlockOp) -> Result<(), Error> {
        let update = Update { revision: self.message.revision, ops: vec![op] };
        self.message = patiently(|| self.desk.update(self.message.id, &update)).await?;
        Ok(())
    }

    /// Ends it: it is whole.
    ///
    /// # Errors
    /// [`Error::Conflict`] `message_final` when it has ended otherwise.
    pub async fn end(&mut self) -> Result<(), Error> {
        self.over(End { status: MessageStatus::Completed, error: None }).await
    }

    /// Ends it without its being whole.
    ///
    /// # Errors
    /// As [`Telling::end`].
    pub async fn fail(&mut self, code: impl Into<String>, message: impl Into<String>) -> Result<(), Error> {
        let error = Some(ErrorNote { code: code.into(), message: message.into() });
        self.over(End { status: MessageStatus::Failed, error }).await
    }

    async fn over(&mut self, end: End) -> Result<(), Error> {
        self.message = patiently(|| self.desk.end(self.message.id, &end)).await?;
        Ok(())
    }
}
