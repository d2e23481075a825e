//! Leases of Operators on Conversations: of several processes of one Operator, one moves its cursor.
//!
//! The lease stands in the cursor's own Record, so that whatever expects the cursor to be unchanged is fenced with it.

use crate::reading::cursor_id;
use crate::rows::{Tries, digest, expect, put, record};
use crate::{Caller, Error, Platform};
use loopd_protocol::{ConversationId, Lease, NewLease, Role};
use loopd_store::{Batch, Place, Table};
use serde::{Deserialize, Serialize};

/// The longest name of a process, in characters.
const HOLDER: usize = 100;

/// The longest lease, in seconds.
const LONGEST_S: u32 = 3600;

/// A lease as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub epoch: u64,
    holder: String,
    /// Until when, in milliseconds since 1970.
    until: i64,
    /// How long a renewal lasts.
    lease_s: u32,
    /// Which request was granted it: two that ask at once are told apart.
    grant: String,
}

impl Held {
    /// The same, from now on.
    pub(crate) fn renewed(self, now: i64) -> Self {
        let until = self.until.max(after(now, self.lease_s));
        Self { until, ..self }
    }
}

fn after(now: i64, lease_s: u32) -> i64 {
    now.saturating_add(i64::from(lease_s) * 1000)
}

impl Platform {
    /// Asks for the lease of the calling Operator on a Conversation, renews it or gives it back. Whoever has it is in
    /// the answer; that it is somebody else is no error.
    ///
    /// # Guarantees
    /// An Epoch is granted once. A process has the lease until it is over, another process takes it or it gives it back;
    /// even then its Turns are taken until another one has the next Epoch.
    ///
    /// # Errors
    /// [`Error::Forbidden`], [`Error::Invalid`], [`Error::NotFound`].
    pub async fn lease(&self, by: &Caller, conversation: ConversationId, wish: NewLease) -> Result<Lease, Error> {
        by.must_be(&[Role::Operator])?;
        if wish.holder.is_empty() || wish.holder.chars().count() > HOLDER {
            return Err(Error::invalid("holder", format!("1 to {HOLDER} characters")));
        }
        if wish.lease_s > LONGEST_S {
            return Err(Error::invalid("lease_s", format!("at most {LONGEST_S} seconds")));
        }
        let grant = digest(&self.new_id());
        let mut tries = Tries::default();
        let mut done = None;
        loop {
            let found = self.writable(by, conversation).await?;
            let (cursor, rev) = self.cursor(by, &found).await?;
            let now = self.now();
            let before = cursor.lease.as_ref();
            if before.is_some() && before == done.as_ref() {
                return Ok(told(before, now, true));
            }
            let held = match wished(before, &wish, (now, &grant)) {
                Wished::Nothing { granted } => return Ok(told(before, now, granted)),
                Wished::Lease(held) => held,
            };
            let id = cursor_id(&by.actor, conversation);
            let next = cursor.leased(held.clone());
            let writes = vec![put(record(Table::Cursor, id, found.scope(), &next), Place::Keep)];
            done = Some(held);
            self.attempt(&mut tries, Batch { expect: vec![expect(Table::Cursor, id, rev)], writes }).await?;
        }
    }
}

/// What a wish comes to.
enum Wished {
    /// Nothing changes.
    Nothing { granted: bool },
    /// This is the lease from now on.
    Lease(Held),
}

fn wished(before: Option<&Held>, wish: &NewLease, (now, grant): (i64, &str)) -> Wished {
    let (until, lease_s) = (after(now, wish.lease_s), wish.lease_s);
    let ours = before.filter(|held| held.holder == wish.holder);
    if let Some(held) = ours.filter(|held| wish.epoch == Some(held.epoch)) {
        let (same, back) = (held.until >= until && lease_s > 0, lease_s == 0 && held.until <= now);
        return match same || back {
            true => Wished::Nothing { granted: true },
            false => Wished::Lease(Held { until, lease_s: lease_s.max(1), ..held.clone() }),
        };
    }
    let taken = before.is_some_and(|held| held.holder != wish.holder && held.until > now);
    // Who renews what it has lost, or gives it back, does not take it.
    if wish.epoch.is_some() || lease_s == 0 || taken {
        return Wished::Nothing { granted: false };
    }
    let epoch = before.map_or(0, |held| held.epoch) + 1;
    Wished::Lease(Held { epoch, holder: wish.holder.clone(), until, lease_s, grant: grant.to_owned() })
}

fn told(held: Option<&Held>, now: i64, granted: bool) -> Lease {
    let expires_in_ms = held.map_or(0, |held| u64::try_from(held.until.saturating_sub(now)).unwrap_or(0));
    let holder = held.map(|held| held.holder.clone()).unwrap_or_default();
    Lease { granted, holder, epoch: held.map_or(0, |held| held.epoch), expires_in_ms }
}
