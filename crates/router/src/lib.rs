//! The Router: an Operator that answers a question with the agents that it may ask.
//!
//! It plans, has the parts worked on side by side, and makes one answer of what was found. What people say meanwhile
//! goes into a new plan, with what was found by then. Everything is visible in its work conversation.
//!
//! Reading order: [`Router`], [`Config`] and [`Prompts`] (what its owner says), `board` (what is known of one answer),
//! `decide` (what is next: a pure function), `plan` (what a model has to reply), `purse` (the budget of the whole
//! answer), `act` (steps become a Turn), `words` (what people read).
//!
//! # Guarantees
//! Every call, note and answer has a key made of the Message that is answered, so that no call is made twice, whatever
//! dies in between. A plan counts once it is said in the work conversation, in one commit with its calls. A task that
//! failed is repeated once, and only when that can do nothing twice; what failed is named in the answer. All calls of an
//! answer together stay within its budget.
#![forbid(unsafe_code)]

mod act;
mod board;
mod config;
mod decide;
mod plan;
mod prompts;
mod purse;
mod targets;
mod words;

pub use config::Config;
pub use prompts::{Prompt, PromptError, Prompts};

use act::Doing;
use async_trait::async_trait;
use board::{Board, Saying};
use decide::{Rules, Step, decide};
use loopd_operator::{Cx, Error, Next, Reconcile};
use loopd_protocol::{ActorKind, ConversationId, Message, Registration};
use std::time::Duration;
use targets::Seen;

/// The Router.
#[derive(Debug, Clone, Default)]
pub struct Router {
    config: Config,
}

impl Router {
    /// The name that it usually has: `operator/router`.
    pub const NAME: &'static str = "router";

    /// A Router that works like this.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    /// What it says of itself.
    #[must_use]
    pub fn registration() -> Registration {
        Registration {
            name: "Router".to_owned(),
            description: "Plans, has agents work side by side, and answers.".to_owned(),
            lease_s: 60,
        }
    }
}

#[async_trait]
impl Reconcile for Router {
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let inputs = cx.inputs();
        let Some((root, later)) = inputs.split_first() else { return Ok(Next::Done) };
        if !is_question(root) {
            cx.handle(root);
            return Ok(Next::Done);
        }
        let said = Saying::of(root);
        if said.text.trim().is_empty() && said.files.is_empty() {
            cx.answer(root, format!("{}/answer", root.id), "There is nothing in your message that I can read.");
            cx.handle(root);
            return Ok(Next::Done);
        }
        let board = Board::read(cx, root, later).await?;
        let targets = cx.targets().await?;
        let seen = Seen::of(&targets, &self.config);
        let rules = Rules {
            agents: &seen.agents,
            planner: &seen.planner,
            usual: &seen.usual,
            max_tasks: self.config.max_tasks.clamp(1, Config::MOST_TASKS),
            max_rounds: self.config.max_rounds.max(1),
            tokens: self.config.tokens,
            micro_usd: self.config.micro_usd,
            obstacle: seen.obstacle.as_deref(),
        };
        let steps = decide(&board, &rules);
        // A plan without a call has no end that would wake the Router.
        let goes_on = steps.iter().any(|step| matches!(step, Step::Take { plan, .. } if plan.tasks.is_empty()));
        let doing = Doing { cx, root, board: &board, agents: &seen.agents, config: &self.config, history: None };
        doing.all(steps).await?;
        Ok(if goes_on { Next::Again(Duration::ZERO) } else { Next::Done })
    }
}

/// People are answered, and Operators that ask; what Operators say to everybody, or reply, would go on for ever.
fn is_question(message: &Message) -> bool {
    message.from.kind() == ActorKind::Person || (!message.to.is_empty() && message.reply_to.is_none())
}
