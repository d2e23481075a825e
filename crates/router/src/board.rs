//! What is known of one answer: everything that its keys did so far. It is read anew for each Reconcile, and nothing of
//! it is kept in between.

use crate::decide::Ask;
use crate::plan::{Kind, Part, Plan};
use loopd_operator::{Cx, Error};
use loopd_protocol::{
    ActorKey, ActorKind, ArtifactId, Block, CallPhase, HarnessCall, Keyed, KnownBlock, Message, MessageId, Place,
};

/// The steps of a round whose keys are known before its plan is.
const STEPS: [&str; 6] = ["plan", "plan/again", "plan/repair", "planned", "sum", "sum/again"];

/// One answer, from the question on.
#[derive(Debug, Clone)]
pub(crate) struct Board {
    /// A plan and what came of it; the first is that of the question, each further one that of what was said since.
    pub rounds: Vec<Round>,
    /// What people said since the last round began, in order.
    pub fresh: Vec<Saying>,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saying {
    pub id: MessageId,
    pub from: ActorKey,
    pub text: String,
    pub files: Vec<ArtifactId>,
}

impl Saying {
    pub fn of(message: &Message) -> Self {
        let words: Vec<_> = message.blocks.iter().map(Block::words).filter(|words| !words.is_empty()).collect();
        let file = |block: &Block| match block {
            Block::Known(KnownBlock::Artifact { artifact, .. }) => Some(*artifact),
            _ => None,
        };
        Self {
            id: message.id,
            from: message.from.clone(),
            text: words.join("\n"),
            files: message.blocks.iter().filter_map(file).collect(),
        }
    }
}

/// A plan and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    /// What it is about: of the first round the question, of a further one what was said since the one before.
    pub said: Vec<Saying>,
    /// The calls that plan.
    pub plan: Tries,
    /// The call that mends the plan.
    pub repair: Option<HarnessCall>,
    /// The plan, once it was taken.
    pub planned: Option<Plan>,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// The calls that sum up.
    pub sum: Tries,
}

/// A task and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// As people and models read it: `1.2` is the second task of the first round.
    pub name: String,
    /// The key of its first call, and what that is called.
    pub key: String,
    pub step: String,
    pub kind: Kind,
    pub part: Part,
    pub calls: Tries,
    /// A later plan has no use for it.
    pub dropped: bool,
}

/// A call, and the one that was made because it failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries {
    pub first: Option<HarnessCall>,
    pub again: Option<HarnessCall>,
}

impl Task {
    /// What its agent is asked for.
    pub fn ask(&self) -> Ask {
        match self.kind {
            Kind::Simple => Ask::Answer,
            Kind::Complex => Ask::Task { title: self.part.title.clone(), prompt: self.part.prompt.clone() },
        }
    }
}

impl Tries {
    /// The one that counts.
    pub fn last(&self) -> Option<&HarnessCall> {
        self.again.as_ref().or(self.first.as_ref())
    }

    /// What it came to.
    pub fn text(&self) -> Option<String> {
        let result = self.last().filter(|call| call.phase == CallPhase::Succeeded)?.result.as_ref()?;
        Some(result.as_str().map_or_else(|| result.to_string(), str::to_owned))
    }

    pub fn all(&self) -> impl Iterator<Item = &HarnessCall> {
        self.first.iter().chain(&self.again)
    }

    /// The call failed in a way that another try may mend, there was none so far, and nothing can be done twice by it.
    pub fn may_repeat(&self) -> bool {
        self.again.is_none() && self.first.as_ref().is_some_and(is_worth_another_try)
    }
}

fn is_worth_another_try(call: &HarnessCall) -> bool {
    // A limit and a rule say the same the second time; of a call that was ended on somebody's wish nothing more is
    // wished, and of one that nobody knows the end of nothing may be done twice.
    let is_decided = matches!(call.reason.as_deref(), Some("BudgetExceeded" | "PolicyDenied" | "Stuck"))
        || call.error.as_ref().is_some_and(|error| error.code == "call.parked");
    matches!(call.phase, CallPhase::Failed | CallPhase::TimedOut) && !is_decided
}

impl Round {
    /// The key of a step of the round.
    pub fn key(&self, root: MessageId, step: &str) -> String {
        key(root, self.said.last().map_or(root, |said| said.id), step)
    }

    pub fn calls(&self) -> impl Iterator<Item = &HarnessCall> {
        let tasks = self.tasks.iter().flat_map(|task| task.calls.all());
        self.plan.all().chain(&self.repair).chain(tasks).chain(self.sum.all())
    }
}

impl Board {
    /// The question.
    pub fn question(&self) -> Option<&Saying> {
        self.rounds.first()?.said.first()
    }

    /// The round that counts.
    pub fn last(&self) -> Option<&Round> {
        self.rounds.last()
    }

    /// Everything that was said since the question and that the answer takes in, in order.
    pub fn late(&self) -> impl Iterator<Item = &Saying> {
        self.rounds.iter().skip(1).flat_map(|round| &round.said)
    }

    /// The tasks that count.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.rounds.iter().flat_map(|round| &round.tasks).filter(|task| !task.dropped)
    }

    pub fn calls(&self) -> impl Iterator<Item = &HarnessCall> {
        self.rounds.iter().flat_map(Round::calls)
    }

    /// Reads everything of the answer to `root`; `later` is what was said since, in order.
    ///
    /// # Errors
    /// What the desk returns.
    pub async fn read(cx: &mut Cx, root: &Message, later: &[Message]) -> Result<Self, Error> {
        // Only people change what is worked on; what an Operator says is a question of its own.
        let people = later.iter().filter(|message| message.from.kind() == ActorKind::Person);
        let said: Vec<_> = std::iter::once(root).chain(people).map(Saying::of).collect();
        let keys = said.iter().flat_map(|said| STEPS.map(|step| key(root.id, said.id, step)));
        let found = cx.keyed_all(Place::Work, &keys.collect::<Vec<_>>()).await?;
        let mut board = Self { rounds: Vec::new(), fresh: Vec::new() };
        for (said, found) in said.into_iter().zip(found.chunks(STEPS.len())) {
            board.fresh.push(said);
            // A round begins with the call that plans it; the first one needs nothing to begin.
            if board.rounds.is_empty() || found.first().is_some_and(|plan| plan.call.is_some()) {
                let said = std::mem::take(&mut board.fresh);
                board.rounds.push(Round::of(said, found));
            }
        }
        board.read_tasks(cx, root.id).await?;
        board.mark_dropped();
        Ok(board)
    }

    async fn read_tasks(&mut self, cx: &mut Cx, root: MessageId) -> Result<(), Error> {
        for (round, number) in self.rounds.iter_mut().zip(1..) {
            round.plan_tasks(root, number);
        }
        let tasks = || self.rounds.iter().flat_map(|round| &round.tasks);
        let keys: Vec<_> = tasks().flat_map(|task| [task.key.clone(), format!("{}/again", task.key)]).collect();
        let found = cx.keyed_all(Place::Work, &keys).await?;
        let tasks = self.rounds.iter_mut().flat_map(|round| &mut round.tasks);
        for (task, found) in tasks.zip(found.chunks(2)) {
            task.calls = Tries { first: call_in(found, 0), again: call_in(found, 1) };
        }
        Ok(())
    }

    fn mark_dropped(&mut self) {
        let plans = self.rounds.iter().filter_map(|round| round.planned.as_ref());
        let dropped: Vec<String> = plans.flat_map(|plan| plan.drop.iter().cloned()).collect();
        for task in self.rounds.iter_mut().flat_map(|round| &mut round.tasks) {
            task.dropped = dropped.contains(&task.name);
        }
    }
}

impl Round {
    /// A round of which nothing is known yet.
    pub const fn begun(said: Vec<Saying>) -> Self {
        let (plan, sum) = (Tries { first: None, again: None }, Tries { first: None, again: None });
        Self { said, plan, repair: None, planned: None, tasks: Vec::new(), sum }
    }

    /// What its [`STEPS`] have come to.
    fn of(said: Vec<Saying>, found: &[Keyed]) -> Self {
        let planned = found.get(3).and_then(|keyed| keyed.message.as_deref()).and_then(Plan::told_in);
        Self {
            plan: Tries { first: call_in(found, 0), again: call_in(found, 1) },
            repair: call_in(found, 2),
            planned,
            sum: Tries { first: call_in(found, 4), again: call_in(found, 5) },
            ..Self::begun(said)
        }
    }

    /// The tasks of its plan, of which nothing is known yet.
    pub fn plan_tasks(&mut self, root: MessageId, number: usize) {
        let Some(plan) = &self.planned else { return };
        let task = |(part, index): (&Part, usize)| {
            let step = format!("work/{index}");
            Task {
                name: format!("{number}.{index}"),
                key: self.key(root, &step),
                step: if number == 1 { step } else { format!("{number}/{step}") },
                kind: plan.kind,
                part: part.clone(),
                calls: Tries::default(),
                dropped: false,
            }
        };
        self.tasks = plan.tasks.iter().zip(1..).map(task).collect();
    }
}

fn call_in(found: &[Keyed], index: usize) -> Option<HarnessCall> {
    found.get(index)?.call.as_deref().cloned()
}

fn key(root: MessageId, last: MessageId, step: &str) -> String {
    format!("{root}/{last}/{step}")
}
