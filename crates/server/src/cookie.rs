//! Sign-in codes, and the signed cookie that a browser gets for one.

use crate::config::{ServerConfig, SessionKey};
use crate::rates::Who;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use loopd_platform::Caller;
use loopd_protocol::{ActorKey, Role};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Keeps a signature from being good for anything else that the same key may sign one day.
const PURPOSE: &[u8] = b"loopd cookie 1";
/// Cookies of our name that one request may carry: pages of other ports of this machine can add some.
const CANDIDATES: usize = 8;
/// Signed-out cookies that are remembered.
const SIGNED_OUT: usize = 10_000;

/// What the cookie says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claims {
    actor: ActorKey,
    roles: Vec<Role>,
    /// Until when, in milliseconds since 1970.
    until: i64,
    nonce: String,
}

/// A browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedIn {
    pub(crate) caller: Caller,
    pub(crate) until: i64,
    pub(crate) who: Who,
}

/// Codes and cookies.
pub(crate) struct Cookies {
    name: String,
    key: SessionKey,
    instance: [u8; 16],
    good_for: Duration,
    code: Duration,
    most_codes: usize,
    codes: Mutex<VecDeque<([u8; 32], Instant)>>,
    /// Who signed out before the cookie ended, and when it ends.
    signed_out: Mutex<HashMap<Who, i64>>,
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookies").field("name", &self.name).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the contents are half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 128 bits of the operating system's randomness.
fn random() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// The first half of a digest: tells secrets apart without keeping them.
pub(crate) fn who_has(secret: &str) -> Who {
    let mut who = Who::default();
    who.copy_from_slice(Sha256::digest(secret.as_bytes()).get(..16).unwrap_or(&[0; 16]));
    who
}

impl Cookies {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let tag: String = config.instance.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Self {
            name: format!("loopd_{tag}"),
            key: config.session_key.clone(),
            instance: config.instance,
            good_for: config.signed_in,
            code: config.limits.code,
            most_codes: config.limits.codes,
            codes: Mutex::default(),
            signed_out: Mutex::default(),
        }
    }

    /// A new code. `None` when the operating system has no randomness.
    pub(crate) fn make_code(&self) -> Option<String> {
        let code = random()?;
        let mut codes = locked(&self.codes);
        codes.push_back((Sha256::digest(code.as_bytes()).into(), Instant::now() + self.code));
        while codes.len() > self.most_codes {
            codes.pop_front();
        }
        Some(code)
    }

    /// Whether the code is good. It is not any more after this. Digests are compared, so that time tells nothing of codes.
    pub(crate) fn use_code(&self, code: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(code.as_bytes()).into();
        let now = Instant::now();
        let mut codes = locked(&self.codes);
        codes.retain(|(_, until)| *until > now);
        let before = codes.len();
        codes.retain(|(good, _)| *good != digest);
        codes.len() < before
    }

    /// What `Set-Cookie` says to sign somebody in.
    pub(crate) fn sign_in(&self, caller: &Caller, now: i64, secure: bool) -> Option<String> {
        let good_for = i64::try_from(self.good_for.as_millis()).unwrap_or(i64::MAX);
        let until = now.saturating_add(good_for);
        let claims = Claims { actor: caller.actor.clone(), roles: caller.roles.clone(), until, nonce: random()? };
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).ok()?);
        let mac = URL_SAFE_NO_PAD.encode(self.mac(&body)?.finalize().into_bytes());
        Some(self.set_cookie(&format!("{body}.{mac}"), self.good_for.as_secs(), secure))
    }

    /// What `Set-Cookie` says to forget the cookie.
    pub(crate) fn forget(&self, secure: bool) -> String {
        self.set_cookie("", 0, secure)
    }

    fn set_cookie(&self, value: &str, seconds: u64, secure: bool) -> String {
        let secure = if secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", self.name)
    }

    /// A cookie that was signed out is no good any more, also where a copy of it was kept.
    pub(crate) fn sign_out(&self, signed_in: &SignedIn, now: i64) {
        let mut signed_out = locked(&self.signed_out);
        signed_out.retain(|_, until| *until > now);
        if signed_out.len() < SIGNED_OUT {
            signed_out.insert(signed_in.who, signed_in.until);
        }
    }

    /// Who the `Cookie` header says is there.
    pub(crate) fn read(&self, header: &str, now: i64) -> Option<SignedIn> {
        let ours = |pair: &'_ str| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.name).then(|| value.to_owned())
        };
        header.split(';').filter_map(ours).take(CANDIDATES).find_map(|value| self.verify(&value, now))
    }

    fn verify(&self, value: &str, now: i64) -> Option<SignedIn> {
        let (body, mac) = value.split_once('.')?;
        // Constant in time.
        self.mac(body)?.verify_slice(&URL_SAFE_NO_PAD.decode(mac).ok()?).ok()?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
        let signed_in = SignedIn {
            caller: Caller { actor: claims.actor, roles: claims.roles },
            until: claims.until,
            who: who_has(&claims.nonce),
        };
        self.is_good(&signed_in, now).then_some(signed_in)
    }

    /// Whether somebody who was signed in still is.
    pub(crate) fn is_good(&self, signed_in: &SignedIn, now: i64) -> bool {
        signed_in.until > now && !locked(&self.signed_out).contains_key(&signed_in.who)
    }

    fn mac(&self, body: &str) -> Option<Hmac<Sha256>> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key.0).ok()?;
        for part in [PURPOSE, &self.instance, body.as_bytes()] {
            mac.update(part);
        }
        Some(mac)
    }
}
