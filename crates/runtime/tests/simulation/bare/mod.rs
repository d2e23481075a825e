//! The machine and the store alone: no runtime, no tasks, no timers. Workers drive a family in one order of events;
//! they die before and after a commit, are paused past their lease and go on as zombies, and their clocks are set.
//! Commits fail, are lost, land unheard or are answered late. A witness reads along what the store holds, and after
//! each commit its fold has to be the one of the worker that made it.

mod agenda;
mod drive;
mod loops;
mod outside;
mod people;
mod worker;

use crate::chance::Chance;
use crate::witness::{self, Witness};
use agenda::{Agenda, What};
use loopd_kernel::machine::{Admission, Env, Input, Machine, Pace, Step};
use loopd_kernel::{CallId, Digest, Epoch, Limits, MicroUsd, Outcome, Projection, RunId, Seq};
use loopd_runtime::driver::{self, Holder};
use loopd_store::memory::Fault;
use loopd_store::{Expect, MemoryStore, RunFilter, RunRow, RunStatus, Store, WorkerId, Write};
use outside::Outside;
use people::People;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use worker::{Me, SKEW_MS, Worker, ready};

/// For so long nothing is left alone.
const TROUBLE_MS: u64 = 600_000;
/// After that the Runs have so long to end.
const PATIENCE_MS: u64 = 1_200_000;

/// What all workers share.
pub struct World {
    pub seed: u64,
    pub agenda: Agenda,
    pub store: MemoryStore,
    pub outside: Outside,
    /// Runs that somebody was told something of.
    pub hints: Vec<RunId>,
    witnesses: BTreeMap<RunId, Witness<'static>>,
    chance: Chance,
    /// Faults, deaths and pauses are over.
    quiet: Arc<AtomicBool>,
    steps: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            agenda: Agenda::default(),
            store: MemoryStore::new(),
            outside: Outside::new(seed),
            hints: Vec::new(),
            witnesses: BTreeMap::new(),
            chance: Chance::new(seed, 1),
            quiet: Arc::default(),
            steps: 0,
        }
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// A door to the store, for a worker.
    fn door(&self, number: u64) -> MemoryStore {
        let (mut chance, quiet) = (Chance::new(self.seed, 1_000 + number), self.quiet.clone());
        self.store.faulty(move |_| match chance.below(100) {
            _ if quiet.load(Ordering::Relaxed) => None,
            0..3 => Some(Fault::Unavailable),
            3..6 => Some(Fault::AmbiguousCommitted),
            6..9 => Some(Fault::AmbiguousLost),
            _ => None,
        })
    }

    /// Whether the worker dies at this moment.
    fn dies(&self, me: &mut Me) -> bool {
        me.alive = me.alive && (self.is_quiet() || !me.chance.one_in(600));
        !me.alive
    }

    /// How late the answer to a commit comes, when it does not come at once.
    fn late(&self, me: &mut Me) -> Option<u64> {
        (!self.is_quiet() && me.chance.one_in(16)).then(|| me.chance.below(8_000))
    }

    /// Everybody is told that a commit was made; `projection` is what its worker makes of the Journal.
    fn committed(&mut self, step: &Step, projection: &Projection) {
        self.steps += u64::from(!step.entries.is_empty());
        self.hints.extend(step.births.iter().map(|birth| birth.child.run));
        self.hints.extend(step.letters.iter().map(|letter| letter.to));
        let run = projection.run;
        let loop_name = &projection.loop_name;
        let witness = self.witnesses.entry(run).or_insert_with(|| Witness::of(run, loops::named(loop_name)));
        for entry in ready(self.store.entries(run, witness.projection().head.seq, 1_000)).unwrap() {
            witness.take(&entry);
        }
        assert_eq!(witness.projection(), projection, "the journal means something else than its worker believes");
    }

    /// A Call is being sent: its intent is durable, and for this worker. Returns the head that the store holds.
    fn is_intended(&self, run: RunId, call: CallId, epoch: Epoch) -> Seq {
        let witness = &self.witnesses[&run];
        let last = witness.told(call).and_then(|told| told.intents.last());
        assert!(last.is_some_and(|(_, whose)| *whose == epoch), "{call} is sent without an intent for {epoch}");
        witness.projection().head.seq
    }

    /// Whether the Call may have changed the world.
    fn is_effect(&self, run: RunId, call: CallId) -> bool {
        self.witnesses.get(&run).and_then(|witness| witness.told(call)).is_some_and(witness::Told::is_effect)
    }

    /// The Runs with one of these statuses; of all when there are none.
    fn rows(&self, statuses: &[RunStatus]) -> Vec<RunRow> {
        let filter = RunFilter { statuses: statuses.to_vec(), limit: 99, ..RunFilter::default() };
        ready(self.store.runs(filter)).unwrap().items
    }

    /// The Run that everything begins with; nobody drives it yet.
    fn begin(&mut self) {
        let (run, epoch) = (RunId([7; 16]), Epoch(1));
        let budget = 2_000 + self.chance.below(8_000);
        let limits = Limits { micro_usd: Some(MicroUsd(budget)), iterations: Some(200), ..Limits::default() };
        let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
        let mut machine = Machine::new(Projection::new(run));
        let mut env = Env {
            now: loopd_kernel::TimeMs(1_000_000),
            epoch,
            dispatch_window_ms: 0,
            skew_ms: SKEW_MS,
            pace: Pace::Drain,
            catalog: &loops::Offers,
            definition: loops::named("parent"),
            salt: &mut || [0; 32],
        };
        let step = machine.apply(Input::Start(admission), &mut env).unwrap();
        let holder = Holder { epoch, worker: WorkerId(u64::MAX), keeps: true };
        let row = driver::new_row(machine.projection(), "default", None, &holder);
        let mut batch = driver::batch(machine.projection(), &step, Seq(0), &[], &holder, false);
        batch.expect = vec![Expect::RunAbsent(run)];
        batch.writes.insert(0, Write::CreateRun(Box::new(row)));
        ready(self.store.commit(batch)).unwrap();
        self.committed(&step, machine.projection());
    }
}

thread_local! {
    /// What befell the workers of this thread's stories: deaths, pauses, clocks set.
    static BEFELL: Cell<[u64; 3]> = const { Cell::new([0; 3]) };
}

/// Two live workers at any time, and those that are gone.
struct Crew {
    workers: Vec<Worker>,
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let alive = self.workers.iter().filter(|worker| worker.me.alive);
        f.debug_map().entries(alive.map(|worker| ((worker.me.number, worker.me.paused), &worker.runs))).finish()
    }
}

impl Crew {
    fn join(&mut self, world: &mut World) {
        let number = self.workers.len();
        self.workers.push(Worker::new(number, world));
        world.agenda.add(world.chance.below(3_000), What::Beat(number));
    }

    fn somebody(&mut self, world: &mut World) -> &mut Worker {
        let alive: Vec<usize> = (0..self.workers.len()).filter(|at| self.workers[*at].me.alive).collect();
        &mut self.workers[alive[world.chance.below(alive.len() as u64) as usize]]
    }

    /// Whoever is paused meets it later, whoever is dead never does.
    fn meets(&mut self, number: usize, what: What, world: &mut World) {
        let worker = &mut self.workers[number];
        if !worker.me.alive {
            return;
        }
        if worker.me.paused > world.agenda.now {
            return world.agenda.add(worker.me.paused - world.agenda.now, what);
        }
        worker.happens(what, world);
        if !worker.me.alive {
            worker.runs.clear();
            self.join(world);
            befell(0);
        }
    }

    fn fate(&mut self, world: &mut World) {
        let fate = world.chance.below(6);
        let pause = world.chance.below(25_000);
        let now = world.agenda.now;
        let worker = self.somebody(world);
        match fate {
            0 => {
                worker.me.alive = false;
                worker.runs.clear();
                self.join(world);
                befell(0);
            }
            1 | 2 => {
                worker.me.paused = now + pause;
                befell(1);
            }
            _ => {
                worker.set_clock();
                befell(2);
            }
        }
    }

    /// Hints arrive at once, twice, or not at all.
    fn tell(&mut self, world: &mut World) {
        while let Some(run) = world.hints.pop() {
            for worker in self.workers.iter().filter(|worker| worker.me.alive && worker.runs.contains_key(&run)) {
                let times = if world.is_quiet() { 1 } else { world.chance.below(3) };
                (0..times).for_each(|_| world.agenda.add(0, What::Hint(worker.me.number, run)));
            }
        }
    }
}

fn befell(what: usize) {
    let mut befell = BEFELL.get();
    befell[what] += 1;
    BEFELL.set(befell);
}

/// Says what befell the workers. Many seeds in which nobody died prove nothing.
pub fn what_befell() {
    let [deaths, pauses, clocks] = BEFELL.get();
    println!("sim befell deaths={deaths} pauses={pauses} clocks_set={clocks}");
    if deaths + pauses + clocks > 100 {
        assert!(deaths > 0 && pauses > 0 && clocks > 0);
    }
}

/// A family from its start to its end. Returns a digest of all its heads.
pub fn live(seed: u64, steps: &AtomicU64) -> Digest {
    let mut world = World::new(seed);
    let (mut crew, mut people) = (Crew { workers: Vec::new() }, People::new(seed));
    world.begin();
    crew.join(&mut world);
    crew.join(&mut world);
    world.agenda.add(1_000, What::People);
    world.agenda.add(1_000, What::Fate);
    while let Some(what) = world.agenda.next() {
        let now = world.agenda.now;
        assert!(now < TROUBLE_MS + PATIENCE_MS, "a run neither ends nor asks: {:?} {crew:#?}", world.rows(&[]));
        match what {
            What::People => {
                let open = world.rows(&[RunStatus::Running, RunStatus::Suspended, RunStatus::Parked]);
                if open.is_empty() {
                    break;
                }
                people.look(&open, &mut world);
                world.agenda.add(500 + world.chance.below(5_000), What::People);
            }
            What::Fate if world.is_quiet() => {}
            What::Fate => {
                world.quiet.store(now > TROUBLE_MS, Ordering::Relaxed);
                crew.fate(&mut world);
                world.agenda.add(4_000 + world.chance.below(30_000), What::Fate);
            }
            What::Beat(number) | What::Hint(number, _) | What::Answer(number, ..) | What::Done(number, ..) => {
                crew.meets(number, what, &mut world);
            }
        }
        crew.tell(&mut world);
    }
    steps.fetch_add(world.steps, Ordering::Relaxed);
    judge(world)
}

/// Everything has ended: the Journals are held against what happened.
fn judge(mut world: World) -> Digest {
    let mut watched = Vec::new();
    for row in world.rows(&[]) {
        let witness = world.witnesses.remove(&row.run).unwrap();
        witness.finish(&row, world.outside.of(row.run));
        assert_eq!(ready(world.store.questions(Some(row.run), 9)).unwrap(), [], "ended with questions");
        if let Some((Outcome::Completed { output }, _)) = witness.projection().outcome() {
            let tally: loops::Tally = serde_json::from_str(output).unwrap();
            assert_eq!(tally.landed, witness.landed(), "the run heard of other effects than its journal tells");
        }
        watched.push((row, witness));
    }
    witness::family(&watched);
    let heads: Vec<&[u8]> = watched.iter().map(|(row, _)| row.hash.0.as_slice()).collect();
    Digest::sha256(&heads)
}
