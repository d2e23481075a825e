//! What an outlet adds is durable with the Entries that it belongs to, once, whatever fails in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::expect;
use loopd_kernel::machine::Admission;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::{Action, Cx, Decision, Event, Failure, Limits, QuestionId, RunId, Seq, Spawn, TimeMs};
use loopd_runtime::{Config, FixedPrograms, Outlet, RunEnd, Runtime, StartError, Started, Stepped};
use loopd_store::memory::Fault;
use loopd_store::{Feed, FeedKind, InboxBody, NewItem, RecordId, RunStatus, Store, StoreError, Write};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::CountedEntropy;
use world::dying::Death;
use world::kin::{Kin, named};

/// Speaks, has a helper ask somebody, waits for a signal, and is parked by the limit of one iteration.
fn parent(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            let helper = Spawn::new("helper", "helper", "\"in\"");
            Decision::none().and(Action::Speak("hello".into())).and(Action::Spawn(helper))
        }
        Event::ChildEnded { .. } => Decision::wait("go"),
        Event::SignalReceived { .. } => Decision::none(),
        Event::IterationStarted { .. } => Decision::finish(state),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn helper(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::Answered { value, .. } => Decision::finish(&value),
        _ => Decision::confirm("go on?"),
    })
}

fn kin() -> Kin {
    Kin::new([named("parent", parent), named("helper", helper)])
}

/// What an outlet does the next time it is asked, instead of telling.
#[derive(Clone)]
enum Mood {
    Fails(StoreError),
    Panics,
}

/// Publishes every step to a Feed of its Run.
#[derive(Default)]
struct Teller {
    moods: Mutex<VecDeque<Mood>>,
    asked: Mutex<u32>,
}

#[async_trait::async_trait]
impl Outlet for Teller {
    async fn beside(&self, step: Stepped<'_>) -> Result<Vec<Write>, StoreError> {
        *self.asked.lock().unwrap() += 1;
        // A store would be asked here.
        tokio::task::yield_now().await;
        let mood = self.moods.lock().unwrap().pop_front();
        match mood {
            Some(Mood::Fails(error)) => return Err(error),
            Some(Mood::Panics) => panic!("the outlet"),
            None => {}
        }
        let kinds: Vec<_> = step.entries.iter().map(|entry| format!("{} {}", entry.seq, entry.kind)).collect();
        let (before, after) = (step.before, step.after);
        let questions = format!("{}>{}", before.questions.len(), after.questions.len());
        let facts = format!(
            "{}>{} {questions} {} {} {}",
            before.status.name(),
            step.status.name(),
            step.admission.unwrap_or("-"),
            after.parent.map_or("-", |_| "child"),
            step.item.unwrap_or("-"),
        );
        assert_eq!(after.tenant, "default");
        assert_eq!(before.head.0 + step.entries.len() as u64, after.head.seq.0);
        let body = format!("{facts}: {}", kinds.join(", ")).into_bytes().into();
        Ok(vec![Write::Publish(NewItem { feed: feed(after.run), at: after.head.at, of: None, body })])
    }
}

fn feed(run: RunId) -> Feed {
    Feed { kind: FeedKind::Actor, id: RecordId(run.0) }
}

async fn told(kin: &Kin, run: RunId) -> Vec<String> {
    let items = kin.store.feed(feed(run), 0, 1_000).await.unwrap();
    items.into_iter().map(|item| String::from_utf8(item.body).unwrap()).collect()
}

async fn worker(kin: &Kin, store: Arc<dyn Store>, stream: u64, outlet: Arc<Teller>) -> Option<Runtime> {
    Runtime::builder(store, Arc::new(FixedPrograms::new(kin.programs.iter().cloned())))
        .config(Config::default())
        .world(kin.clock.clone(), Arc::new(CountedEntropy::of(stream)))
        .outlet(outlet)
        .start()
        .await
        .ok()
}

fn admission() -> Admission {
    let limits = Limits { iterations: Some(1), ..Limits::default() };
    Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: Some("key".into()) }
}

async fn start(kin: &Kin, runtime: &Runtime) -> Result<RunId, StartError> {
    Ok(match runtime.start(&kin.programs[0], admission()).await? {
        Started::New(driven) => driven.run,
        Started::Already(run) => run,
    })
}

/// What people do about everything that waits for them, as often as they like.
async fn serve(kin: &Kin, at: TimeMs) {
    for row in kin.store.questions(None, 10).await.unwrap() {
        let (question, end) = (row.question.id, QuestionEnd::Answered);
        let body = InboxBody::Answer { question, end, actor: "ann".into(), value: "true".into() };
        let _ = loopd_runtime::tell(&kin.store, row.run, "answer".into(), at, body).await;
    }
    for row in kin.rows().await.into_iter().filter(|row| row.parent.is_none()) {
        let tell = |key: &str, body| loopd_runtime::tell(&kin.store, row.run, key.into(), at, body);
        let raise = Limits { iterations: Some(5), ..Limits::default() };
        let _ = match row.status {
            RunStatus::Suspended if kin.kinds(row.run).await.contains("child_ended") => {
                // Nobody asked this: it is taken, and says nothing.
                let (question, end) = (QuestionId(99), QuestionEnd::Answered);
                let stray = InboxBody::Answer { question, end, actor: "ann".into(), value: "1".into() };
                tell("stray", stray).await.unwrap();
                tell("go", InboxBody::Signal { name: "go".into(), body: "1".into() }).await
            }
            RunStatus::Parked => tell("more", InboxBody::Reopen { actor: "ann".into(), raise }).await,
            RunStatus::Running | RunStatus::Suspended | RunStatus::Ended => Ok(()),
        };
    }
}

/// Lives until every Run is sealed, and checks that what was told is what the Journals say.
async fn live(kin: &Kin, what: &str) {
    for _ in 0..1_000 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        serve(kin, TimeMs(1_000_000)).await;
        let rows = kin.rows().await;
        if rows.len() == 2 && rows.iter().all(|row| row.status == RunStatus::Ended) {
            return check(kin, what).await;
        }
    }
    panic!("{what}: {}", kin.table().await);
}

async fn check(kin: &Kin, what: &str) {
    for row in kin.rows().await {
        let entries = kin.store.entries(row.run, Seq(0), 1_000).await.unwrap();
        let journal = entries.iter().map(|entry| format!("{} {}", entry.seq, entry.kind)).collect::<Vec<_>>();
        let told = told(kin, row.run).await;
        let parts: Vec<_> = told.iter().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
        assert_eq!(parts.join(", "), journal.join(", "), "{what}");
        let last = format!(">{} ", row.status.name());
        assert!(told.last().is_some_and(|line| line.contains(&last)), "{what}: {told:?}");
    }
    kin.verify().await;
}

#[tokio::test(start_paused = true)]
async fn every_commit_of_every_run_is_told_once() {
    let kin = kin();
    let outlet = Arc::<Teller>::default();
    let runtime = worker(&kin, Arc::new(kin.store.clone()), 1, outlet.clone()).await.unwrap();
    start(&kin, &runtime).await.unwrap();
    live(&kin, "undisturbed").await;
    let (mut table, mut items) = (String::new(), 0);
    for row in kin.rows().await {
        writeln!(table, "{}", row.loop_name).unwrap();
        for line in told(&kin, row.run).await {
            items += 1;
            writeln!(table, "  {line}").unwrap();
        }
    }
    assert_eq!(*outlet.asked.lock().unwrap(), items);
    expect![[r#"
        parent
          running>running 0>0 key - -: 1 started
          running>suspended 0>0 key - -: 2 iteration_started, 3 decided, 4 intended
          suspended>suspended 0>0 key - child:run_1c9caf91b811ef3d02baaee3291629f9:6: 5 child_ended, 6 decided
          suspended>parked 0>0 key - go: 7 signal, 8 decided, 9 parked
          parked>ended 0>0 key - more: 10 reopened, 11 iteration_started, 12 decided, 13 ended
        helper
          running>running 0>0 - child birth: 1 started
          running>suspended 0>1 - child -: 2 iteration_started, 3 decided
          suspended>ended 1>0 - child answer: 4 question_ended, 5 decided, 6 ended
    "#]]
    .assert_eq(&table);
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_commit_leaves_entries_and_what_was_told_of_them_alike() {
    for death in [Death::Before, Death::After] {
        for at in 1.. {
            let kin = kin();
            let dying = kin.dying(at, death);
            if let Some(first) = worker(&kin, dying.clone(), 1, Arc::default()).await {
                let _ = start(&kin, &first).await;
                for _ in 0..30 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    serve(&kin, TimeMs(1_000_000)).await;
                }
            }
            if !dying.is_dead() {
                assert!(at > 8, "{at}");
                break;
            }
            let second = worker(&kin, Arc::new(kin.store.clone()), 2, Arc::default()).await.unwrap();
            start(&kin, &second).await.unwrap();
            live(&kin, &format!("{death:?} {at}")).await;
            second.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_or_that_nobody_is_sure_of_tells_nothing_twice() {
    for fault in [Fault::Unavailable, Fault::Full, Fault::AmbiguousCommitted, Fault::AmbiguousLost] {
        for at in 1.. {
            let kin = kin();
            let (met, seen) = (Arc::new(Mutex::new(false)), met_at(at));
            let (note, mut seen) = (met.clone(), seen);
            let store = kin.store.faulty(move |_| {
                let hit = seen();
                *note.lock().unwrap() |= hit;
                hit.then_some(fault)
            });
            let runtime = worker(&kin, Arc::new(store), 1, Arc::default()).await.unwrap();
            if start(&kin, &runtime).await.is_err() {
                start(&kin, &runtime).await.unwrap();
            }
            live(&kin, &format!("{fault:?} {at}")).await;
            runtime.shutdown().await;
            if !*met.lock().unwrap() {
                assert!(at > 8, "{at}");
                break;
            }
        }
    }
}

/// True the `at`th time.
fn met_at(at: u32) -> impl FnMut() -> bool {
    let mut n = 0;
    move || {
        n += 1;
        n == at
    }
}

#[tokio::test(start_paused = true)]
async fn an_outlet_that_cannot_answer_is_waited_for_like_the_store() {
    let out_of_reach = Mood::Fails(StoreError::Unavailable("nobody answers".into()));
    for mood in [out_of_reach, Mood::Panics, Mood::Fails(StoreError::Corrupt("it does not read".into()))] {
        for at in 1..=9 {
            let kin = kin();
            let outlet = Arc::<Teller>::default();
            let runtime = worker(&kin, Arc::new(kin.store.clone()), 1, outlet.clone()).await.unwrap();
            if at > 1 {
                start(&kin, &runtime).await.unwrap();
            }
            while *outlet.asked.lock().unwrap() + 1 < at {
                tokio::time::sleep(Duration::from_millis(100)).await;
                serve(&kin, TimeMs(1_000_000)).await;
            }
            outlet.moods.lock().unwrap().extend(std::iter::repeat_n(mood.clone(), 5));
            while start(&kin, &runtime).await.is_err() {}
            live(&kin, &at.to_string()).await;
            runtime.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outlet_that_fails_for_good_keeps_a_run_from_starting_and_from_going_on_and_loses_nothing() {
    let kin = kin();
    let outlet = Arc::<Teller>::default();
    let runtime = worker(&kin, Arc::new(kin.store.clone()), 1, outlet.clone()).await.unwrap();
    let broken = || Mood::Fails(StoreError::Corrupt("it does not read".into()));
    outlet.moods.lock().unwrap().push_back(broken());
    assert!(matches!(start(&kin, &runtime).await, Err(StartError::Commit(_))));
    assert_eq!(kin.rows().await.len(), 0);
    let Started::New(driven) = runtime.start(&kin.programs[0], admission()).await.unwrap() else { panic!() };
    outlet.moods.lock().unwrap().push_back(broken());
    let run = driven.run;
    assert!(matches!(driven.wait().await, RunEnd::Lost(_)));
    assert_eq!((kin.kinds(run).await.as_str(), told(&kin, run).await.len()), ("started", 1));
    live(&kin, "given up once").await;
}

/// Two children that need the same tokens: the second has to wait until the first gives some back.
fn rivals(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::spawn("first", "helper", &"in").and(Action::Spawn(Spawn::new("second", "helper", "\"in\"")))
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

/// Its worker has changed, so it is found out anew that the Run waits: that is a commit without Entries.
#[tokio::test(start_paused = true)]
async fn a_status_that_changes_without_entries_is_told_once() {
    for fault in [None, Some(Fault::AmbiguousCommitted), Some(Fault::AmbiguousLost), Some(Fault::Unavailable)] {
        let kin = Kin::new([named("rivals", rivals), named("helper", helper)]);
        let first = worker(&kin, Arc::new(kin.store.clone()), 1, Arc::default()).await.unwrap();
        let limits = Limits { tokens: Some(100), ..Limits::default() };
        let Started::New(driven) = first.start(&kin.programs[0], Admission { limits, ..admission() }).await.unwrap()
        else {
            panic!()
        };
        let run = driven.run;
        kin.until(run, |row| row.status == RunStatus::Suspended).await;
        first.shutdown().await;
        let before = told(&kin, run).await;
        let mut faults = [fault].into_iter();
        let store = kin.store.faulty(move |batch| {
            let appends = batch.writes.iter().any(|write| matches!(write, Write::Append { .. }));
            if appends { None } else { faults.next().flatten() }
        });
        let second = worker(&kin, Arc::new(store), 2, Arc::default()).await.unwrap();
        second.resume(run).await.unwrap().wait().await;
        let after = told(&kin, run).await;
        assert_eq!(
            after.strip_prefix(&before[..]),
            Some(&["running>suspended 0>0 key - -: ".to_owned()][..]),
            "{fault:?}"
        );
        let row = kin.row(run).await;
        assert_eq!((row.status, row.worker), (RunStatus::Suspended, None));
    }
}
