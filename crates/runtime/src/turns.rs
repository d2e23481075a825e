//! Whose turn it is: the Runs of a Loop that has a limit, and Runs that are suspected of killing their process.

use crate::config::Config;
use crate::program::Program;
use crate::seats::{Seat, Seats};
use loopd_kernel::Projection;
use loopd_kernel::machine::Input;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The queues of a worker.
#[derive(Default)]
pub struct Turns {
    loops: Mutex<HashMap<String, Arc<Seats>>>,
    suspects: Arc<Seats>,
}

/// What a Run has to wait for.
#[derive(Debug, Clone)]
pub struct Wants {
    /// Its Loop.
    pub loop_name: String,
    /// At most so many of its Loop are driven at once.
    pub most: Option<usize>,
    /// Crash recoveries that led nowhere, when it is about to be recovered once more; 0 when it is not suspected.
    pub recoveries: u32,
}

impl Wants {
    /// What a Run waits for before `first` is applied; `awaited` when its parent waits for it here.
    pub fn of(program: &Program, projection: &Projection, first: &[Input], awaited: bool) -> Self {
        let recovers = first.iter().any(|input| matches!(input, Input::Recover));
        let recoveries = if recovers { projection.recoveries } else { 0 };
        Self {
            loop_name: program.definition().name().into(),
            most: program.most_active().filter(|_| !awaited),
            recoveries,
        }
    }
}

/// It may be driven while it has this.
#[derive(Debug, Default)]
pub struct Turn {
    /// Ends with the activation.
    pub seat: Option<Seat>,
    /// Ends when the Run gets on, and with the activation.
    pub probation: Option<Probation>,
}

/// While it lives no other suspect is driven, for as long as `Config::suspect_hold` allows.
#[derive(Debug)]
pub struct Probation {
    _over: oneshot::Sender<()>,
}

impl Probation {
    fn begin(seat: Seat, hold: Duration) -> Self {
        let (over, ended) = oneshot::channel();
        // A Run that works for hours would keep every other suspect from it: one that has not killed its process for
        // so long lets the next one in.
        tokio::spawn(async move {
            let _ = tokio::time::timeout(hold, ended).await;
            drop(seat);
        });
        Self { _over: over }
    }
}

impl Turns {
    /// Waits for the Run's turn; `None` when the worker is about to stop before it comes. A worker that stops already
    /// makes nobody wait: it intends nothing, so nothing can be too much.
    pub async fn take(&self, wants: &Wants, config: &Config, drain: &CancellationToken) -> Option<Turn> {
        if drain.is_cancelled() {
            return Some(Turn::default());
        }
        tokio::select! {
            biased;
            turn = self.wait(wants, config) => Some(turn),
            () = drain.cancelled() => None,
        }
    }

    async fn wait(&self, wants: &Wants, config: &Config) -> Turn {
        if wants.recoveries > 0 {
            tokio::time::sleep(back_off(config, wants.recoveries)).await;
        }
        let seat = match wants.most {
            Some(most) => {
                let seats = self.seats_of(&wants.loop_name);
                Some(seats.take(&seats.place(0), most).await)
            }
            None => None,
        };
        // Last, so that no suspect keeps the others waiting before it is driven.
        let suspicion = match wants.recoveries {
            0 => None,
            recoveries => Some(self.suspects.take(&self.suspects.place(recoveries), 1).await),
        };
        Turn { seat, probation: suspicion.map(|seat| Probation::begin(seat, config.suspect_hold)) }
    }

    fn seats_of(&self, loop_name: &str) -> Arc<Seats> {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.entry(loop_name.to_owned()).or_default().clone()
    }
}

fn back_off(config: &Config, recoveries: u32) -> Duration {
    let factor = 2_u32.saturating_pow(recoveries.saturating_sub(1));
    config.suspect_backoff.saturating_mul(factor).min(config.suspect_backoff_cap)
}
