//! Sign-in codes, and the cookie that a browser gets for one: its value is the secret of a token.

use crate::config::ServerConfig;
use crate::locked;
use crate::rates::Who;
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Cookies of our name that one request may carry: pages of other ports of this machine can add some.
const CANDIDATES: usize = 8;

/// Codes and cookies.
pub(crate) struct Cookies {
    name: String,
    good_for: Duration,
    code: Duration,
    most_codes: usize,
    codes: Mutex<VecDeque<([u8; 32], Instant)>>,
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookies").field("name", &self.name).finish_non_exhaustive()
    }
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
            good_for: config.signed_in,
            code: config.limits.code,
            most_codes: config.limits.codes,
            codes: Mutex::default(),
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
    pub(crate) fn keep(&self, secret: &str, secure: bool) -> String {
        self.set_cookie(secret, self.good_for.as_secs(), secure)
    }

    /// What `Set-Cookie` says to forget the cookie.
    pub(crate) fn forget(&self, secure: bool) -> String {
        self.set_cookie("", 0, secure)
    }

    fn set_cookie(&self, value: &str, seconds: u64, secure: bool) -> String {
        let secure = if secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", self.name)
    }

    /// The secrets that cookies of our name hold.
    pub(crate) fn secrets<'a>(&self, headers: &'a HeaderMap) -> Vec<&'a str> {
        let texts = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
        let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.name).map(|(_, value)| value).take(CANDIDATES).collect()
    }
}
