//! What an activation hears: its inbox, and what is due.

use super::{Activation, DriveError};
use loopd_kernel::ids::TimerId;
use loopd_kernel::machine::{Admission, Input};
use loopd_kernel::projection::{Call, Status};
use loopd_kernel::question::{OpenQuestion, QuestionEnd};
use loopd_kernel::{QuestionId, TimeMs};
use loopd_store::rows::{INBOX_ITEMS, INBOX_RESERVE};
use loopd_store::{InboxBody, InboxItem};
use std::collections::BTreeSet;

/// Inbox items that one read brings.
const INBOX_PAGE: usize = 64;

/// The inbox item that an input was, which the commit of that input takes.
pub(super) struct Item {
    pub id: i64,
    pub key: String,
}

impl Activation {
    /// Reads the inbox, and queues what is due behind it: what came in time goes first, however much else came.
    pub(super) async fn look_around(&mut self) -> Result<(), DriveError> {
        let now = self.performer.clock.now();
        let everything = !self.due(now).is_empty();
        self.hear(everything).await?;
        self.looked_at = now;
        let due = self.due(now);
        self.queue.extend(due.into_iter().map(|input| (input, None)));
        let back_off = |call: &Call| call.not_before.is_some_and(|at| at <= now);
        let projection = self.machine.projection();
        if projection.status == Status::Open && projection.wanted.iter().any(back_off) {
            self.queue.push_back((Input::Continue, None));
        }
        Ok(())
    }

    /// Timers and expiries that are due at `now` and not queued yet.
    fn due(&self, now: TimeMs) -> Vec<Input> {
        let projection = self.machine.projection();
        if projection.status != Status::Open {
            return Vec::new();
        }
        let fires = |timer: TimerId| self.own().any(|input| matches!(input, Input::Timer(id) if *id == timer));
        let ends = |open: QuestionId| {
            self.own().any(|input| matches!(input, Input::Answer { question, .. } if *question == open))
        };
        let timers = projection.timers.iter().filter(|timer| timer.at <= now && !fires(timer.id));
        let timers = timers.map(|timer| Input::Timer(timer.id));
        let expired = |open: &&OpenQuestion| open.expires_at.is_some_and(|at| at <= now) && !ends(open.id);
        let expiries = projection.questions.iter().filter(expired).map(|question| Input::Answer {
            question: question.id,
            end: QuestionEnd::TimedOut,
            actor: String::from("loopd"),
            value: String::new(),
            given_at: now,
        });
        timers.chain(expiries).collect()
    }

    /// Queued inputs that are no inbox items.
    fn own(&self) -> impl Iterator<Item = &Input> {
        self.queue.iter().filter(|(_, item)| item.is_none()).map(|(input, _)| input)
    }

    /// Queues waiting inbox items. True: there were some that apply.
    pub(super) async fn read_inbox(&mut self) -> Result<bool, DriveError> {
        self.hear(false).await
    }

    /// The same; `everything` when nothing that waits may be left for later.
    async fn hear(&mut self, everything: bool) -> Result<bool, DriveError> {
        let parked = matches!(self.machine.projection().status, Status::Parked(_));
        // What moves a parked Run may wait behind any number of signals that do not.
        let limit = if parked || everything { INBOX_ITEMS + INBOX_RESERVE } else { INBOX_PAGE };
        let items = self.store.inbox(self.run(), limit).await?;
        let read = items.len();
        let queued: BTreeSet<i64> = self.queue.iter().filter_map(|(_, item)| Some(item.as_ref()?.id)).collect();
        let applies = |item: &InboxItem| !queued.contains(&item.id) && (!parked || item.body.moves_parked());
        let fresh: Vec<InboxItem> = items.into_iter().filter(applies).collect();
        let found = !fresh.is_empty();
        // What a parked Run leaves lying it hears once it is reopened.
        self.more_in_inbox = if parked { found && fresh.len() < read } else { read >= limit };
        for item in fresh {
            let taken = Item { id: item.id, key: item.key.clone() };
            self.queue.push_back((input_of(item), Some(taken)));
        }
        Ok(found)
    }
}

/// The input that an inbox item is to its Run.
#[must_use]
pub fn input_of(item: InboxItem) -> Input {
    match item.body {
        InboxBody::Signal { name, body } => Input::Signal { name, body },
        InboxBody::Answer { question, end, actor, value } => {
            Input::Answer { question, end, actor, value, given_at: item.at }
        }
        InboxBody::Cancel { actor, reason } => Input::Cancel { actor, reason },
        InboxBody::Reopen { actor, raise } => Input::Reopen { actor, raise },
        InboxBody::Late { call, epoch, output } => Input::Late { call, epoch, output },
        InboxBody::News(news) => Input::News(news),
        InboxBody::Birth { parent, tenant, input, limits } => {
            Input::Born { admission: Admission { tenant, input, limits, key: None }, parent, refused: None }
        }
    }
}
