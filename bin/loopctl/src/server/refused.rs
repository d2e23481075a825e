//! What a server refuses, and that it does not answer, as problems of this program.

use crate::problem::{Code, Problem};
use loopd_client::Error;
use loopd_fixture::excerpt;
use loopd_protocol::Problem as Refusal;

/// Characters of a server's words that are shown.
const WORDS: usize = 600;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Address(what) => Self::new(Code::Usage, excerpt::line(&what, WORDS)),
            Error::Unreachable(why) => Self::new(Code::ServerUnreachable, "the server does not answer")
                // The operating system's numbers help nobody here.
                .why(excerpt::line(why.split(" (os error ").next().unwrap_or_default(), WORDS))
                .fix("look whether a `loopd` runs there"),
            Error::Strange(what) => Self::new(Code::ServerUnreachable, "what answers there is no server of this time")
                .why(excerpt::line(&what, WORDS))
                .fix("look at the address, and whether loopctl and loopd are of one release"),
            Error::Refused(refusal) => refused(&refusal),
        }
    }
}

fn refused(refusal: &Refusal) -> Problem {
    let detail = excerpt::line(&refusal.detail, WORDS);
    let what = match &refusal.field {
        Some(field) if !detail.starts_with(field) => format!("{}: {detail}", excerpt::line(field, 80)),
        Some(_) | None => detail,
    };
    let server_code = excerpt::line(&refusal.code, 80);
    let why = format!("the server says `{server_code}`");
    match refusal.status {
        401 => Problem::new(Code::ServerToken, "the server does not know this token")
            .why("it was mistyped, revoked, has ended, or is for another server")
            .fix("`loopctl token create` makes one for whoever is admin there"),
        403 => Problem::new(Code::ServerForbidden, what).why(why),
        404 => Problem::new(Code::ServerNotFound, what),
        409 | 412 => Problem::new(Code::ServerConflict, what).why(why),
        400 | 405 | 413 | 415 | 422 | 431 => Problem::new(Code::ServerInvalid, what).why(why),
        408 | 429 | 503 => Problem::new(Code::ServerBusy, what).why(why).fix("try again in a moment"),
        _ => Problem::new(Code::ServerFailed, what).why(why).fix("its log says more"),
    }
}
