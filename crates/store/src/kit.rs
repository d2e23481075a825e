//! The conformance kit: what every store must pass, ours or yours.
//!
//! Implement [`Subject`] for your store and hand a fresh one per case to [`conformance!`](crate::conformance):
//!
//! ```
//! use async_trait::async_trait;
//! use loopd_store::kit::{Features, Handle, Subject};
//! use loopd_store::{MemoryStore, StoreError};
//!
//! struct Mine(MemoryStore);
//!
//! #[async_trait]
//! impl Subject for Mine {
//!     fn features(&self) -> Features {
//!         Features::default()
//!     }
//!
//!     async fn open(&self) -> Result<Handle, StoreError> {
//!         Ok(std::sync::Arc::new(self.0.clone()))
//!     }
//! }
//!
//! mod kit {
//!     loopd_store::conformance!(super::Mine(loopd_store::MemoryStore::new()));
//! }
//! # fn main() {}
//! ```
//!
//! Each case becomes a test of its own name. Without the macro, [`CASES`] and [`check`] do the same.
//!
//! # What it proves
//! The rules of [`Store`], [`Batch`](crate::Batch) and [`Claim`](crate::Claim): all or nothing, compare-and-set
//! on Seq, epoch and revision, fencing, keys, caps, bounds, order, claims, paging, searching, numbers without a gap,
//! byte-exact bodies, isolation of Batches that were sent together. With [`Features::durable`] also that reopening keeps all of it, and with
//! [`Features::damage`] that a changed byte is found and named.
//!
//! # What it does not prove
//! That a commit survives losing power or `kill -9` in the middle; what happens on a full disk, a lost
//! connection, a newer schema; that only one process drives; speed. These need the real thing under the store:
//! write them beside its adapter. A race that the kit did not hit is not absent, only unlikely: it is run with
//! real parallelism, but it does not enumerate interleavings.

mod bytes;
mod caps;
mod children;
mod claims;
mod commits;
mod crowd;
mod definitions;
mod durable;
mod feeds;
mod hints;
mod inbox;
mod parallel;
mod records;
mod search;
mod shelf;
mod world;

use crate::error::StoreError;
use crate::port::Store;
use async_trait::async_trait;
use loopd_kernel::{RunId, Seq};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A handle, as the kit uses it.
pub type Handle = Arc<dyn Store>;

/// What a store can do beyond the port, so that the kit knows which cases apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// What is committed is there after closing and opening again.
    pub durable: bool,
    /// There are client handles beside the driver.
    pub clients: bool,
    /// [`Subject::damage`] can change a stored byte.
    pub damage: bool,
}

/// The store under test: one place with nothing in it.
#[async_trait]
pub trait Subject: Send + Sync + 'static {
    /// What it can do.
    fn features(&self) -> Features;

    /// Opens the place to drive it: the first time empty, later with what it holds. The kit drops every driver
    /// handle before it asks for the next one.
    ///
    /// # Errors
    /// Those of the store.
    async fn open(&self) -> Result<Handle, StoreError>;

    /// Opens a client beside the open driver. Called only with [`Features::clients`].
    ///
    /// # Errors
    /// Those of the store.
    async fn client(&self) -> Result<Handle, StoreError> {
        Err(StoreError::Unavailable("this store has no clients".to_owned()))
    }

    /// Changes one byte in the stored body of an Entry while no handle is open. Called only with
    /// [`Features::damage`].
    ///
    /// # Errors
    /// Those of the store.
    async fn damage(&self, run: RunId, seq: Seq) -> Result<(), StoreError> {
        Err(StoreError::Unavailable(format!("{run} entry {seq} cannot be damaged")))
    }
}

/// How a case went, if it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The store does what the case says.
    Passed,
    /// The case is about a feature that the store does not have.
    NotApplicable,
}

/// What a store did instead of what it should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(String);

impl Finding {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Self {
        Self(format!("the store failed where it should not: {error}"))
    }
}

type Outcome = Result<Verdict, Finding>;
type Body = fn(Arc<dyn Subject>) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One thing that every store must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    body: Body,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists the cases once, for [`CASES`] and for the macro that turns each into a test.
macro_rules! cases {
    ($dollar:tt $($group:ident: $($name:ident)*;)*) => {
        /// Every case.
        pub const CASES: &[Case] =
            &[$($(Case { name: stringify!($name), body: |subject| Box::pin($group::$name(subject)) },)*)*];

        /// One test per case of the conformance kit. Takes an expression that makes a fresh
        /// [`Subject`](crate::kit::Subject).
        #[macro_export]
        macro_rules! conformance {
            ($dollar subject:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        let verdict = $dollar crate::kit::check(stringify!($name), $dollar subject);
                        if let Err(finding) = verdict {
                            panic!("{}: {finding}", stringify!($name));
                        }
                    }
                )*)*
            };
        }
    };
}

cases! { $
    commits:
        a_run_reads_back_whole
        a_batch_is_all_or_nothing
        a_wrong_seq_is_a_conflict
        a_wrong_epoch_is_fenced
        the_epoch_is_looked_at_first
        a_run_is_created_once
        an_unknown_run_is_a_conflict
        admission_keys_are_unique_per_tenant
        appends_are_dense
        an_empty_batch_changes_nothing
        a_snapshot_is_replaced
        a_blob_is_stored_once
        questions_are_listed_until_they_end
        lists_filter_and_page;
    bytes:
        odd_bytes_come_back_exactly
        large_bodies_come_back_exactly
        numbers_come_back_at_their_limits
        records_and_items_hold_any_bytes;
    inbox:
        inbox_items_wait_in_order_until_taken
        inbox_keys_are_known_for_ever
        an_inbox_is_capped
        a_sealed_run_takes_no_items
        a_client_only_adds_inbox_items;
    caps:
        an_item_is_capped_in_bytes
        an_inbox_is_capped_in_bytes;
    claims:
        a_claim_takes_what_is_due_and_nothing_else
        a_claim_raises_the_epoch_and_fences
        a_live_worker_keeps_its_runs
        a_lapsed_worker_loses_its_runs
        a_claim_of_one_run_needs_no_reason
        a_claim_is_limited_and_fair
        a_run_without_entries_is_claimed
        next_wake_is_the_earliest_that_a_claim_would_take;
    definitions:
        a_definition_changes_and_nothing_else
        a_claim_takes_only_what_its_worker_can_drive;
    children:
        children_are_listed_by_their_parent
        a_notice_never_fails_its_batch;
    parallel:
        appenders_do_not_disturb_each_other
        one_of_many_wins_each_seq
        one_of_many_wins_an_admission_key
        a_group_isolates_its_members
        readers_see_whole_prefixes
        two_claimers_never_get_the_same_run
        pages_hold_while_runs_are_added;
    hints:
        listeners_hear_what_was_committed
        a_slow_listener_holds_up_nobody;
    records:
        a_record_reads_back_whole
        a_revision_is_compared
        places_are_numbered_in_order
        a_number_is_given_once
        a_record_stays_in_its_scope
        keys_are_unique_per_table_and_scope
        a_touch_moves_what_is_behind
        what_is_removed_is_gone
        what_is_due_is_found
        records_come_in_the_order_asked
        a_list_is_paged_by_place_and_identity
        record_writes_are_all_or_nothing;
    search:
        words_find_records
        no_sign_is_an_operator;
    feeds:
        a_feed_is_numbered_without_a_gap
        a_part_of_a_feed_is_capped_in_bytes
        an_item_keeps_where_its_record_stood
        an_erased_feed_goes_on
        a_counter_is_bounded
        listeners_hear_of_a_feed;
    crowd:
        publishers_leave_no_gap
        numbers_leave_no_gap
        one_of_many_wins_each_revision
        a_bound_holds_when_many_count;
    durable:
        reopening_keeps_everything
        reopening_keeps_what_surrounds
        keys_survive_reopening
        the_chain_verifies_after_reopening
        damage_is_found_and_named;
}

/// Longer than any case takes on a machine that is busy with other things; a store that hangs fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the case of this name against a fresh subject, on a runtime of its own with several threads.
///
/// # Errors
/// The [`Finding`]; also when there is no such case.
pub fn check(name: &str, subject: impl Subject) -> Outcome {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Finding::new(format!("there is no case {name}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    let runtime = runtime.map_err(|error| Finding::new(format!("no runtime: {error}")))?;
    let body = (case.body)(Arc::new(subject));
    runtime.block_on(async move {
        let late = |_| Finding::new(format!("no end after {} seconds", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, body).await.map_err(late)?
    })
}

/// Compares whole values.
fn same<T: PartialEq + fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), Finding> {
    if found == expected {
        return Ok(());
    }
    let short = |value: &T| {
        let text = format!("{value:?}");
        if text.chars().count() > 600 { text.chars().take(600).chain(['…']).collect() } else { text }
    };
    Err(Finding(format!("{what}:\n    found {}\n expected {}", short(found), short(expected))))
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Finding> {
    if holds { Ok(()) } else { Err(Finding(what())) }
}
