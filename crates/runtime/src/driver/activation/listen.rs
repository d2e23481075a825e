//! What an activation hears: its inbox, and what is due.

use super::{Activation, DriveError};
use loopd_kernel::machine::{Admission, Input};
use loopd_kernel::projection::Status;
use loopd_store::rows::{INBOX_ITEMS, INBOX_RESERVE};
use loopd_store::{InboxBody, InboxItem};

/// Inbox items that one read brings.
const INBOX_PAGE: usize = 64;

impl Activation {
    /// Queues what is due: timers, expiries, Calls whose back-off is over.
    pub(super) fn queue_due(&mut self) {
        let now = self.performer.clock.now();
        self.looked_at = now;
        let projection = self.machine.projection();
        if projection.status != Status::Open {
            return;
        }
        for timer in projection.timers.iter().filter(|timer| timer.at <= now) {
            self.queue.push_back((Input::Timer(timer.id), None));
        }
        for question in projection.questions.iter().filter(|open| open.expires_at.is_some_and(|at| at <= now)) {
            let end = loopd_kernel::question::QuestionEnd::TimedOut;
            let actor = String::from("loopd");
            let (question, value, given_at) = (question.id, String::new(), now);
            let input = Input::Answer { question, end, actor, value, given_at };
            self.queue.push_back((input, None));
        }
        if projection.wanted.iter().any(|call| call.not_before.is_some_and(|at| at <= now)) {
            self.queue.push_back((Input::Continue, None));
        }
    }

    /// Queues waiting inbox items. True: there were some that apply.
    pub(super) async fn read_inbox(&mut self) -> Result<bool, DriveError> {
        let parked = matches!(self.machine.projection().status, Status::Parked(_));
        // What moves a parked Run may wait behind any number of signals that do not.
        let limit = if parked { INBOX_ITEMS + INBOX_RESERVE } else { INBOX_PAGE };
        let items = self.store.inbox(self.run(), limit).await?;
        let read = items.len();
        let queued = |id: i64| self.queue.iter().any(|(_, item)| *item == Some(id));
        let applies = |item: &InboxItem| !queued(item.id) && (!parked || item.body.moves_parked());
        let fresh: Vec<InboxItem> = items.into_iter().filter(applies).collect();
        let found = !fresh.is_empty();
        // What a parked Run leaves lying it hears once it is reopened.
        self.more_in_inbox = if parked { found && fresh.len() < read } else { read >= limit };
        for item in fresh {
            let id = item.id;
            self.queue.push_back((input_of(item), Some(id)));
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
