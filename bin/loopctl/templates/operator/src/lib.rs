//! An Operator: it hands what people say to an agent, and answers with what that came to.
#![forbid(unsafe_code)]

use async_trait::async_trait;
use loopd_operator::{Cx, Error, Next, Place, Reconcile, call};
use loopd_protocol::{ActorKind, Block, ConversationId, Message};

/// Hands what people say to an agent.
#[derive(Debug, Clone)]
pub struct Relay {
    /// The target that it calls.
    pub agent: String,
}

#[async_trait]
impl Reconcile for Relay {
    // This looks like a program that runs once. It runs whenever something has
    // happened, from its beginning; what it did before is found by its key.
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let inputs = cx.inputs();
        let Some(input) = inputs.first() else {
            return Ok(Next::Done);
        };
        // Two Operators that answer each other would never end.
        if input.from.kind() != ActorKind::Person {
            cx.handle(input);
            return Ok(Next::Done);
        }
        if let Some(answer) = self.answer(cx, input).await? {
            cx.answer(input, key(input, "answer"), answer);
            cx.handle(input);
        }
        Ok(Next::Done)
    }
}

impl Relay {
    /// The answer, once the agent is done. Its end calls reconcile again.
    async fn answer(&self, cx: &mut Cx, input: &Message) -> Result<Option<String>, Error> {
        let asked: Vec<_> = input.blocks.iter().map(Block::words).collect();
        let new = call(&self.agent, asked.join("\n"));
        let made = cx.prompt(Place::Work, &key(input, "call"), new).await?;
        let Some(made) = made.filter(|made| made.is_over()) else {
            return Ok(None);
        };
        let failed = || {
            let error = made.state().error.as_ref();
            let why = error.map_or("it was stopped", |error| &error.message);
            format!("{} could not answer: {why}", self.agent)
        };
        Ok(Some(made.text().unwrap_or_else(failed)))
    }
}

/// What a step is known by, also after a restart: the message and the step's name.
fn key(input: &Message, step: &str) -> String {
    format!("{}/{step}", input.id)
}
