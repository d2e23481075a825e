//! An Operator that does what it is told.

use async_trait::async_trait;
use loopd_operator::{Cx, Error, Next, Place, Reconcile, ask, call, choose, confirm, markdown};
use loopd_protocol::{Block, ConversationId, KnownBlock, Message, Open};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Does what the first word of an input says.
#[derive(Debug, Default)]
pub struct Script {
    /// What it says of itself.
    pub name: &'static str,
    /// Fails this often before it does anything.
    pub fails: AtomicU32,
}

impl Script {
    pub fn named(name: &'static str) -> Self {
        Self { name, fails: AtomicU32::new(0) }
    }
}

pub fn words(message: &Message) -> String {
    message.blocks.iter().map(Block::words).collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl Reconcile for Script {
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let inputs = cx.inputs();
        let Some(input) = inputs.first() else { return Ok(Next::Done) };
        let left = self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(left) if left % 2 == 0 => return Err(Error::own("as it was told")),
            Ok(_) => panic!("as it was told"),
            Err(_) => {}
        }
        let text = words(input);
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match verb {
            "echo" => cx.answer(input, key(input, "echo"), format!("{rest}, says {}", self.name)),
            "work" => return work(cx, input, rest).await,
            "tell" => return tell(cx, input).await,
            "later" => return later(cx, input).await,
            "all" => return all(cx, input).await,
            _ => cx.answer(input, key(input, "what"), "What?"),
        }
        cx.handle(input);
        Ok(Next::Done)
    }
}

fn key(input: &Message, step: &str) -> String {
    format!("{}/{step}", input.id)
}

/// A call, and its result as the answer.
async fn work(cx: &mut Cx, input: &Message, prompt: &str) -> Result<Next, Error> {
    let Some(call) = cx.prompt(Place::Work, &key(input, "work"), call("steps", prompt)).await? else {
        return Ok(Next::Done);
    };
    if call.is_over() {
        let came_to = call.text().unwrap_or_else(|| "nothing".into());
        cx.answer(input, key(input, "answer"), format!("{}: {came_to}", call.state().phase.name()));
        cx.handle(input);
    }
    Ok(Next::Done)
}

/// A Message that is written in pieces.
async fn tell(cx: &mut Cx, input: &Message) -> Result<Next, Error> {
    let empty = Block::Known(KnownBlock::Markdown { text: String::new() });
    let open = Open { actor: None, to: Vec::new(), reply_to: Some(input.id), blocks: vec![empty] };
    let mut telling = cx.tell(Place::Here, &key(input, "tell"), open).await?;
    if !telling.is_over() {
        // What a process before this one has written is there.
        let written = words(telling.message()).len();
        for piece in ["a", "b", "c"].into_iter().skip(written) {
            telling.append(0, piece).await?;
        }
        telling.end().await?;
    }
    cx.handle(input);
    Ok(Next::Done)
}

/// Nothing at first, and an answer once it is asked to be looked at again.
async fn later(cx: &mut Cx, input: &Message) -> Result<Next, Error> {
    let said = cx.keyed(Place::Here, &key(input, "soon")).await?.message;
    match said {
        Some(_) => {
            cx.answer(input, key(input, "now"), "Now.");
            cx.handle(input);
            Ok(Next::Done)
        }
        None => {
            cx.speak(Place::Here, key(input, "soon"), markdown("Soon."));
            Ok(Next::Again(Duration::from_secs(5)))
        }
    }
}

/// Two calls at once, then a question, then a confirm, then the answer.
async fn all(cx: &mut Cx, input: &Message) -> Result<Next, Error> {
    cx.speak(Place::Here, key(input, "begin"), markdown("I begin."));
    let mut over = 0;
    for name in ["one", "two"] {
        let prompt = format!("pay:1 speak:{name} {name}");
        let made = cx.prompt(Place::Work, &key(input, name), call("steps", prompt)).await?;
        over += usize::from(made.is_some_and(|made| made.is_over()));
    }
    if over < 2 {
        return Ok(Next::Done);
    }
    let which = choose("Which?", &["one", "two"], 600);
    let Some(which) = cx.ask(Place::Here, &key(input, "which"), which).await?.filter(|which| which.is_over()) else {
        return Ok(Next::Done);
    };
    let why = ask("Why?", 600);
    let Some(why) = cx.ask(Place::Here, &key(input, "why"), why).await?.filter(|why| why.is_over()) else {
        return Ok(Next::Done);
    };
    let sure = confirm("Sure?", 600);
    let Some(sure) = cx.confirm(Place::Here, &key(input, "sure"), sure).await?.filter(|sure| sure.is_over()) else {
        return Ok(Next::Done);
    };
    let answers = [which.text(), why.text()].map(Option::unwrap_or_default).join(" ");
    cx.answer(input, key(input, "answer"), format!("Done: {answers}, {}.", sure.is_accepted()));
    cx.handle(input);
    Ok(Next::Done)
}
