//! The exhaustive small model of the effect protocol: every order of claims, sends, landings, deaths, pauses,
//! probes, settlements and answers, for each effect class.
//!
//! It is written from the specification and shares no code with the machine; `spec.rs` states the ten rules. With
//! all of them the properties hold in every reachable state. Without any one of them the search finds a shortest way
//! to a violation, and these ways are written down below: they are the reasons for the rules.
//!
//! The machine follows them: see `../probes.rs` for Probed, late results and people who answer early.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod search;
mod spec;
mod world;

use expect_test::{Expect, expect};
use search::explore;
use spec::{Class, Flaw, Spec};
use world::Violation;

/// The search must find this violation; `expect` is a shortest way to it. A Call of class Once is repeated by a person
/// only; for every other class the way has to do without.
#[track_caller]
fn breaks(class: Class, flaw: Flaw, kind: Violation, expect: Expect) {
    let retries = class == Class::Once;
    let found = explore(Spec { class, flaw, retries }, Some(kind));
    let trace = found.trace(kind).unwrap_or_else(|| panic!("{flaw:?} does not break {class:?}"));
    println!("{trace}  after {} states", found.count());
    expect.assert_eq(&trace);
}

/// With all rules kept nothing is wrong in any reachable state; there are so many of them.
#[track_caller]
fn holds(class: Class, states: usize) {
    let all = explore(Spec { class, flaw: Flaw::None, retries: true }, None);
    let traces: Vec<_> = all.found.keys().filter_map(|kind| all.trace(*kind)).collect();
    assert!(traces.is_empty(), "{}", traces.join("\n"));
    println!("{class:?}: {} states", all.count());
    assert_eq!(all.count(), states, "the model has changed: look at what it no longer visits");
}

#[test]
fn read_calls_settle_once() {
    holds(Class::Read, 18_251);
}

#[test]
fn calls_of_class_once_happen_once_and_settle_once() {
    holds(Class::Once, 13_869);
}

#[test]
fn keyed_calls_happen_once_and_settle_once() {
    holds(Class::Keyed, 135_651);
}

#[test]
fn probed_calls_happen_once_and_settle_once() {
    holds(Class::Probed, 20_300);
}

#[test]
fn billable_calls_settle_once_and_are_charged() {
    holds(Class::Billable, 27_769);
}

/// Without rule 1 a replaced worker records what it holds over what its successor recorded, whatever the class.
#[test]
fn an_unchecked_epoch_settles_twice() {
    for class in [Class::Read, Class::Keyed, Class::Billable] {
        let found = explore(Spec { class, flaw: Flaw::EpochUnchecked, retries: true }, Some(Violation::SettledTwice));
        assert!(found.trace(Violation::SettledTwice).is_some(), "{class:?}");
    }
    breaks(
        Class::Once,
        Flaw::EpochUnchecked,
        Violation::SettledTwice,
        expect![[r#"
        Once, EpochUnchecked: SettledTwice
           2  B takes the run over
           2  A commits an intent
           2  B settles it as unknown and asks a person
           2  A sends
           2  a request lands
           2  A hears the reply
           2  A settles it as landed
    "#]],
    );
    breaks(
        Class::Probed,
        Flaw::EpochUnchecked,
        Violation::Doubled,
        expect![[r#"
        Probed, EpochUnchecked: Doubled
           0  A commits an intent
           3  B takes the run over
           3  B probes: not landed
           3  B believes the probe and wants the call again
           3  B commits an intent
           3  B sends
           3  a request lands
           3  A has not sent in time and records that
           3  A commits an intent
           3  A sends
           3  a request lands
    "#]],
    );
}

/// The hole of the zombie worker: it intends, is paused, and sends when another one has taken over.
#[test]
fn an_ignored_window_doubles_the_effect() {
    breaks(
        Class::Once,
        Flaw::WindowIgnored,
        Violation::Doubled,
        expect![[r#"
        Once, WindowIgnored: Doubled
           0  A commits an intent
           3  B takes the run over
           3  B settles it as unknown and asks a person
           3  the person says: do it again
           3  B commits an intent
           3  B sends
           3  a request lands
           3  A sends
           3  a request lands
    "#]],
    );
    breaks(
        Class::Keyed,
        Flaw::WindowIgnored,
        Violation::Doubled,
        expect![[r#"
            Keyed, WindowIgnored: Doubled
               0  A commits an intent
               0  A sends
               0  a request lands
               2  B takes the run over
               2  B wants the call again
               2  B commits an intent
               5  B sends
               5  a request lands
        "#]],
    );
    breaks(
        Class::Probed,
        Flaw::WindowIgnored,
        Violation::Doubled,
        expect![[r#"
        Probed, WindowIgnored: Doubled
           0  A commits an intent
           3  B takes the run over
           3  B probes: not landed
           3  B believes the probe and wants the call again
           3  B commits an intent
           3  B sends
           3  a request lands
           3  A sends
           3  a request lands
    "#]],
    );
}

/// A window that ends with the lease is too long for a slow clock.
#[test]
fn a_forgotten_skew_lets_a_zombie_send() {
    for class in [Class::Read, Class::Keyed, Class::Probed, Class::Billable] {
        let found = explore(Spec { class, flaw: Flaw::SkewForgotten, retries: true }, Some(Violation::SentByZombie));
        assert!(found.trace(Violation::SentByZombie).is_some(), "{class:?}");
    }
    breaks(
        Class::Once,
        Flaw::SkewForgotten,
        Violation::SentByZombie,
        expect![[r#"
        Once, SkewForgotten: SentByZombie
           2  A commits an intent
           2  B takes the run over
           2  A sends
    "#]],
    );
}

/// Bytes that something in between holds for longer than the bound: no rule of ours covers this.
#[test]
fn a_landing_beyond_the_bound_doubles_the_effect() {
    breaks(
        Class::Once,
        Flaw::LandingUnbounded,
        Violation::Doubled,
        expect![[r#"
        Once, LandingUnbounded: Doubled
           0  A commits an intent
           1  A sends
           3  B takes the run over
           3  B settles it as unknown and asks a person
           3  the person says: do it again
           3  a request lands
           3  B commits an intent
           3  B sends
           3  a request lands
    "#]],
    );
    breaks(
        Class::Keyed,
        Flaw::LandingUnbounded,
        Violation::Doubled,
        expect![[r#"
            Keyed, LandingUnbounded: Doubled
               0  A commits an intent
               0  A sends
               0  a request lands
               2  B takes the run over
               2  B wants the call again
               2  B commits an intent
               3  B sends
               5  a request lands
        "#]],
    );
    breaks(
        Class::Probed,
        Flaw::LandingUnbounded,
        Violation::Doubled,
        expect![[r#"
        Probed, LandingUnbounded: Doubled
           0  A commits an intent
           1  A sends
           3  B takes the run over
           3  B probes: not landed
           3  a request lands
           3  B believes the probe and wants the call again
           3  B commits an intent
           3  B sends
           3  a request lands
    "#]],
    );
}

/// "Not landed" before the last moment at which it may land is no answer.
#[test]
fn a_probe_that_is_believed_at_once_doubles_the_effect() {
    breaks(
        Class::Probed,
        Flaw::ProbeBelieved,
        Violation::Doubled,
        expect![[r#"
        Probed, ProbeBelieved: Doubled
           0  A commits an intent
           0  A sends
           0  A dies
           0  B takes the run over
           0  B probes: not landed
           0  a request lands
           0  B believes the probe and wants the call again
           0  B commits an intent
           0  B sends
           0  a request lands
    "#]],
    );
}

/// The target forgets a key after `dedup_for`; what counts is when a request lands at last, not its deadline.
#[test]
fn a_keyed_call_that_lands_after_its_key_is_forgotten_doubles_the_effect() {
    breaks(
        Class::Keyed,
        Flaw::DedupIgnored,
        Violation::Doubled,
        expect![[r#"
            Keyed, DedupIgnored: Doubled
               0  A commits an intent
               0  A sends
               0  a request lands
               5  B takes the run over
               5  B wants the call again
               5  B commits an intent
               5  B sends
               5  a request lands
        "#]],
    );
    breaks(
        Class::Keyed,
        Flaw::DedupToDeadline,
        Violation::Doubled,
        expect![[r#"
            Keyed, DedupToDeadline: Doubled
               0  A commits an intent
               0  A sends
               0  a request lands
               3  B takes the run over
               3  B wants the call again
               3  B commits an intent
               4  B sends
               5  a request lands
        "#]],
    );
}

/// A person who looks before the bound is over sees no more than a probe would.
#[test]
fn a_person_who_answers_too_early_doubles_the_effect() {
    breaks(
        Class::Once,
        Flaw::PersonHasty,
        Violation::Doubled,
        expect![[r#"
        Once, PersonHasty: Doubled
           0  A commits an intent
           0  A sends
           0  A dies
           0  B takes the run over
           0  B settles it as unknown and asks a person
           0  the person says: do it again
           0  a request lands
           0  B commits an intent
           0  B sends
           0  a request lands
    "#]],
    );
}

/// That the second attempt was refused, or shall not be made, does not undo the first one.
#[test]
fn an_earlier_attempt_that_is_forgotten_makes_the_journal_untrue() {
    breaks(
        Class::Keyed,
        Flaw::RefusalBelieved,
        Violation::Untrue,
        expect![[r#"
        Keyed, RefusalBelieved: Untrue
           0  A commits an intent
           0  A sends
           0  a request lands
           0  A dies
           0  B takes the run over
           0  B wants the call again
           0  B commits an intent
           0  B sends
           0  the request of B is refused
           0  B settles it as failed
    "#]],
    );
    breaks(
        Class::Keyed,
        Flaw::WantedIsUnsent,
        Violation::Untrue,
        expect![[r#"
        Keyed, WantedIsUnsent: Untrue
           0  A commits an intent
           0  A sends
           0  a request lands
           0  A dies
           0  B takes the run over
           0  B wants the call again
           0  the run is cancelled, B settles it as never sent
    "#]],
    );
}
