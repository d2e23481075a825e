//! A review board: two agents argue over a proposal, a person decides, and the decision is recorded in a file.
//!
//! Reading order: [`Board`] (what happens to a proposal), `debate` (who says what), [`Decisions`] (the Operator's own
//! business: a file that is written exactly once, whatever dies).
#![forbid(unsafe_code)]

mod debate;
mod decisions;

pub use decisions::{Decision, Decisions};

use async_trait::async_trait;
use debate::Debate;
use loopd_operator::{Asked, Cx, Error, Next, Place, Reconcile, choose, markdown};
use loopd_protocol::{ActorKind, Block, ConversationId, Message, NewQuestion, QuestionStatus};
use std::time::Duration;

/// Proposals of one Conversation that are looked at at once; a Turn takes a limited number of acts.
const AT_ONCE: usize = 10;

/// When a decision that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// The board.
#[derive(Debug, Clone)]
pub struct Board {
    /// How often each side argues, at least once.
    pub rounds: u32,
    /// How long a person has to decide, in seconds.
    pub decide_s: u64,
    /// Where decisions are kept.
    pub decisions: Decisions,
}

#[async_trait]
impl Reconcile for Board {
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let mut next = Next::Done;
        // Proposals do not wait for each other: a person may take a day to decide on the first.
        for input in cx.inputs().iter().take(AT_ONCE) {
            // Operators that talk to each other would never end.
            if input.from.kind() != ActorKind::Person {
                cx.handle(input);
                continue;
            }
            match self.review(cx, input).await? {
                Stage::Open => {}
                Stage::Unwritten => next = Next::Again(AGAIN),
                Stage::Over(answer) => {
                    cx.answer(input, key(input, "end"), answer);
                    cx.handle(input);
                }
            }
        }
        Ok(next)
    }
}

/// How far a proposal is.
enum Stage {
    /// Somebody has to argue or to decide.
    Open,
    /// It is decided, and cannot be written down now.
    Unwritten,
    /// It is over, and this is the answer.
    Over(String),
}

/// What a step of a review is known by, also after a restart.
fn key(input: &Message, step: &str) -> String {
    format!("{}/{step}", input.id)
}

impl Board {
    async fn review(&self, cx: &mut Cx, input: &Message) -> Result<Stage, Error> {
        let proposal: Vec<_> = input.blocks.iter().map(Block::words).collect();
        let proposal = proposal.join("\n");
        let debate = Debate::new(proposal, self.rounds.max(1));
        let Some(debate) = debate.held(cx, input).await? else { return Ok(Stage::Open) };
        for (side, why) in debate.failures() {
            let said = format!("`{}` could not argue: {}. You decide without it.", side.target(), debate::quoted(why));
            cx.speak(Place::Here, key(input, &format!("{}/failed", side.target())), markdown(said));
        }
        let Some(asked) = self.decided(cx, input, &debate).await? else { return Ok(Stage::Open) };
        let Some(decision) = asked.text() else { return Ok(Stage::Over(undecided(&asked))) };
        let by = asked.state().answer.as_ref();
        let decision = Decision {
            proposal: input.id,
            decided: decision.clone(),
            by: by.map(|by| by.by.to_string()).unwrap_or_default(),
            at_ms: by.map(|by| by.at).unwrap_or_default(),
            text: debate.minutes(),
        };
        self.record(cx, input, &decision).await
    }

    /// The person's decision, once there is one.
    async fn decided(&self, cx: &mut Cx, input: &Message, debate: &Debate) -> Result<Option<Asked>, Error> {
        let question = choose(debate.summary(), &["accept", "reject"], self.decide_s);
        let title = "The board has argued. What do you decide?".to_owned();
        let to = Some(input.from.clone());
        let question = NewQuestion { title, to, reply_to: Some(input.id), ..question };
        let asked = cx.ask(Place::Here, &key(input, "decide"), question).await?;
        Ok(asked.filter(Asked::is_over))
    }

    /// The effect comes first and the answer after it: whoever is told that it is recorded finds it. A process that dies
    /// in between writes the same file again.
    async fn record(&self, cx: &mut Cx, input: &Message, decision: &Decision) -> Result<Stage, Error> {
        match self.decisions.record(decision).await {
            Ok(file) => Ok(Stage::Over(format!("Decided: **{}**. It is recorded in `{file}`.", decision.decided))),
            Err(error) => {
                tracing::error!(%error, proposal = %decision.proposal, "a decision cannot be written");
                let said = format!("Decided: **{}**. It cannot be recorded now; I try again.", decision.decided);
                cx.speak(Place::Here, key(input, "unwritten"), markdown(said));
                Ok(Stage::Unwritten)
            }
        }
    }
}

fn undecided(asked: &Asked) -> String {
    let why = match asked.state().status {
        QuestionStatus::Declined => "you did not want to decide",
        QuestionStatus::TimedOut => "nobody decided in time",
        QuestionStatus::Open | QuestionStatus::Answered | QuestionStatus::Dismissed | QuestionStatus::Withdrawn => {
            "the question was closed"
        }
    };
    format!("Nothing is decided: {why}. Nothing is recorded.")
}
