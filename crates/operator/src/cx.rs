//! What a Reconcile has: what was said, what was done before, and the Turn that it fills.

use crate::desk::Desk;
use crate::error::{Error, patiently};
use crate::{Asked, Call, Telling, markdown};
use loopd_protocol::{
    Act, ActorKey, ActorKind, AskKind, Block, Conversation, ConversationId, Handled, HarnessCallId, Keyed, KnownBlock,
    Message, NewCall, NewQuestion, Open, Place, Polled, QuestionId, Say, Target,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Keys that are looked up in one request.
const KEYS: usize = 50;

/// One Reconcile of one Conversation.
///
/// # Guarantees
/// [`Cx::speak`], [`Cx::prompt`], [`Cx::ask`], [`Cx::confirm`] and [`Cx::handle`] do nothing by themselves: they are
/// committed together once the Reconcile has returned `Ok`, and not at all when it returns an error. Only
/// [`Cx::tell`] writes at once.
///
/// # Assumptions
/// Keys name what a Reconcile decides: the same decision has the same key after a restart, and another one another key.
/// They are usually made of the id of the Message that is answered.
#[derive(Debug)]
pub struct Cx {
    desk: Arc<dyn Desk>,
    me: ActorKey,
    conversation: ConversationId,
    polled: Polled,
    inputs: Arc<[Message]>,
    /// What was looked up together.
    known: HashMap<(Place, String), Keyed>,
    acts: Vec<Act>,
    taken: BTreeSet<u64>,
}

impl Cx {
    pub(crate) fn new(desk: Arc<dyn Desk>, me: ActorKey, conversation: ConversationId, polled: Polled) -> Self {
        let inputs = polled.messages.iter().filter(|message| is_input(message, &me)).cloned().collect();
        Self { desk, me, conversation, polled, inputs, known: HashMap::new(), acts: Vec::new(), taken: BTreeSet::new() }
    }

    /// Who the Operator is.
    #[must_use]
    pub const fn me(&self) -> &ActorKey {
        &self.me
    }

    /// The Conversation.
    #[must_use]
    pub const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// What was said to the Operator, or to everybody, by people and other Operators, and is not handled yet; in order.
    /// What its own calls and Questions came to is not in it: their handles know.
    #[must_use]
    pub fn inputs(&self) -> Arc<[Message]> {
        Arc::clone(&self.inputs)
    }

    /// All whole Messages that the cursor has not passed, whoever they are for.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.polled.messages
    }

    /// Whether there is more than was read for this Reconcile.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.polled.more
    }

    /// The last Messages before one, in order.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn before(&self, message: &Message, limit: u32) -> Result<Vec<Message>, Error> {
        patiently(|| self.desk.messages(message.conversation, message.seq, limit)).await
    }

    /// What the Conversation says of itself: title, members.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn about(&self) -> Result<Conversation, Error> {
        patiently(|| self.desk.conversation(self.conversation)).await
    }

    /// What calls may be made to.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn targets(&self) -> Result<Vec<Target>, Error> {
        patiently(|| self.desk.targets()).await
    }

    /// The Operator's work conversation, if there is one by now.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn work(&self) -> Result<Option<ConversationId>, Error> {
        let works = patiently(|| self.desk.work(self.conversation)).await?;
        let mine = |work: &Conversation| work.work_of.as_ref().is_some_and(|of| of.operator == self.me);
        Ok(works.into_iter().find(mine).map(|work| work.id))
    }

    /// What a key of the Operator did before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keyed(&mut self, place: Place, key: &str) -> Result<Keyed, Error> {
        self.keyed_by(place, None, key).await
    }

    /// What each of these keys of the Operator did before, in their order. They are looked up together, and
    /// [`Cx::keyed`], [`Cx::prompt`], [`Cx::ask`] and [`Cx::confirm`] do not look again in this Reconcile.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keyed_all(&mut self, place: Place, keys: &[String]) -> Result<Vec<Keyed>, Error> {
        let mut all = Vec::with_capacity(keys.len());
        for some in keys.chunks(KEYS) {
            let found = patiently(|| self.desk.keyed(self.conversation, place, None, some)).await?;
            for (key, found) in some.iter().zip(found) {
                self.known.insert((place, key.clone()), found.clone());
                all.push(found);
            }
        }
        Ok(all)
    }

    async fn keyed_by(&self, place: Place, actor: Option<&ActorKey>, key: &str) -> Result<Keyed, Error> {
        let known = self.known.get(&(place, key.to_owned())).filter(|_| actor.is_none_or(|actor| *actor == self.me));
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let keys = [key.to_owned()];
        let found = patiently(|| self.desk.keyed(self.conversation, place, actor, &keys)).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Says a Message. The same key with other words than before is refused as `key_taken`, and with it the Turn.
    pub fn speak(&mut self, place: Place, key: impl Into<String>, say: Say) {
        self.speak_of(place, key, say, Vec::new());
    }

    /// As [`Cx::speak`]; the Message names the calls that it is made of, at most 100.
    pub fn speak_of(&mut self, place: Place, key: impl Into<String>, say: Say, calls: Vec<HarnessCallId>) {
        self.acts.push(Act::Say { key: key.into(), place, say, calls });
    }

    /// Says Markdown to whoever said the Message, as the answer to it.
    pub fn answer(&mut self, message: &Message, key: impl Into<String>, text: impl Into<String>) {
        let say = Say { to: vec![message.from.clone()], reply_to: Some(message.id), ..markdown(text) };
        self.speak(Place::Here, key, say);
    }

    /// The call that this key made; without one, it is made with this Turn, and its end wakes the Operator. What is asked
    /// of it counts the first time only.
    ///
    /// # Errors
    /// [`Error`] when nobody can tell whether it was made.
    pub async fn prompt(&mut self, place: Place, key: &str, new: NewCall) -> Result<Option<Call>, Error> {
        if let Some(call) = self.keyed(place, key).await?.call {
            return Ok(Some(Call::known(Arc::clone(&self.desk), *call)));
        }
        let effect_key = if new.effect_key.is_empty() { key.to_owned() } else { new.effect_key };
        self.acts.push(Act::Call { key: key.to_owned(), place, call: NewCall { effect_key, ..new } });
        Ok(None)
    }

    /// The Question that this key asked; without one, it is asked with this Turn, and its end wakes the Operator. What is
    /// asked counts the first time only, and with it the deadline.
    ///
    /// # Errors
    /// [`Error`] when nobody can tell whether it was asked.
    pub async fn ask(&mut self, place: Place, key: &str, new: NewQuestion) -> Result<Option<Asked>, Error> {
        if let Some(question) = self.keyed_by(place, new.actor.as_ref(), key).await?.question {
            return Ok(Some(Asked::known(Arc::clone(&self.desk), *question)));
        }
        self.acts.push(Act::Ask { key: key.to_owned(), place, ask: new });
        Ok(None)
    }

    /// As [`Cx::ask`], for a yes or a no.
    ///
    /// # Errors
    /// As [`Cx::ask`].
    pub async fn confirm(&mut self, place: Place, key: &str, new: NewQuestion) -> Result<Option<Asked>, Error> {
        self.ask(place, key, NewQuestion { kind: AskKind::Confirm, ..new }).await
    }

    /// Begins a Message that goes on, at once; with a key that began one before, goes on with that.
    ///
    /// # Errors
    /// [`Error::Conflict`] `key_taken`; [`Error::Refused`] `no_work` when there is no work conversation yet.
    pub async fn tell(&mut self, place: Place, key: &str, open: Open) -> Result<Telling, Error> {
        let id = match place {
            Place::Here => self.conversation,
            Place::Work => {
                let none = || Error::refused("no_work", "there is no work conversation yet: a turn opens it");
                self.work().await?.ok_or_else(none)?
            }
        };
        let message = patiently(|| self.desk.begin(id, key, &open)).await?;
        Ok(Telling::new(Arc::clone(&self.desk), message))
    }

    /// The call with this id.
    ///
    /// # Errors
    /// [`Error::Refused`] `not_found`.
    pub async fn call(&self, id: HarnessCallId) -> Result<Call, Error> {
        Call::of(Arc::clone(&self.desk), id).await
    }

    /// The Question with this id.
    ///
    /// # Errors
    /// [`Error::Refused`] `not_found`.
    pub async fn question(&self, id: QuestionId) -> Result<Asked, Error> {
        Asked::of(Arc::clone(&self.desk), id).await
    }

    /// The input is handled with this Turn: it does not come again. What is not, does, also after a restart.
    pub fn handle(&mut self, input: &Message) {
        self.taken.insert(input.seq);
    }

    /// All inputs of this Reconcile are handled with this Turn.
    pub fn handle_all(&mut self) {
        self.taken.extend(self.inputs.iter().map(|input| input.seq));
    }

    /// Whether there are inputs that this Reconcile has not handled, here or behind what it has read.
    pub(crate) fn leaves_inputs(&self) -> bool {
        self.polled.more || self.inputs.iter().any(|input| !self.taken.contains(&input.seq))
    }

    /// The acts, and where the cursor stands after them.
    pub(crate) fn into_turn(self) -> (Vec<Act>, Option<Handled>) {
        // What is for others is passed with what was handled, or where it stands in the way of more.
        let passes = !self.taken.is_empty() || self.polled.more;
        let handled = passes.then(|| self.handled()).filter(|handled| {
            let before = Handled { seq: self.polled.seq, open: handled.open.clone() };
            *handled != before || !self.taken.is_empty()
        });
        (self.acts, handled)
    }

    fn handled(&self) -> Handled {
        let left = |input: &&Message| !self.taken.contains(&input.seq);
        let untaken = self.inputs.iter().filter(left).map(|input| input.seq);
        let first = untaken.clone().find(|seq| *seq > self.polled.seq);
        let most = self.taken.iter().next_back().copied().unwrap_or(0);
        let passed = first.map_or(self.polled.upto, |first| first - 1);
        let seq = self.polled.seq.max(most).max(passed);
        let mut open: Vec<_> = untaken.chain(self.polled.open.iter().copied()).filter(|open| *open <= seq).collect();
        open.sort_unstable();
        open.dedup();
        Handled { seq, open }
    }
}

fn is_input(message: &Message, me: &ActorKey) -> bool {
    let of_a_call = message.origin.as_ref().is_some_and(|origin| origin.call.is_some() || origin.run.is_some());
    let is_reply = message.blocks.iter().any(|block| matches!(block, Block::Known(KnownBlock::Reply { .. })));
    message.is_for(me) && message.from.kind() != ActorKind::Harness && !of_a_call && !is_reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use loopd_protocol::{MessageId, MessageStatus};

    fn message(seq: u64, from: &str, to: &[&str]) -> Message {
        Message {
            id: MessageId([u8::try_from(seq).unwrap(); 16]),
            conversation: ConversationId([1; 16]),
            seq,
            from: from.parse().unwrap(),
            to: to.iter().map(|to| to.parse().unwrap()).collect(),
            reply_to: None,
            status: MessageStatus::Completed,
            revision: 1,
            blocks: vec![Block::Known(KnownBlock::Text { text: "x".to_owned() })],
            block_count: 1,
            error: None,
            origin: None,
            created_at: 0,
            updated_at: 0,
        }
    }

    /// A desk that nobody asks.
    #[derive(Debug)]
    struct Nobody;

    /// What is handled when of these Messages some are.
    #[track_caller]
    fn check(polled: Polled, taken: &[u64], expected: Option<(u64, &[u64])>) {
        let me: ActorKey = "operator/op".parse().unwrap();
        let mut cx = Cx::new(Arc::new(Nobody), me, ConversationId([1; 16]), polled);
        for input in cx.inputs().iter().filter(|input| taken.contains(&input.seq)) {
            cx.handle(input);
        }
        let (_, handled) = cx.into_turn();
        let handled = handled.map(|handled| (handled.seq, handled.open));
        assert_eq!(handled, expected.map(|(seq, open)| (seq, open.to_vec())));
    }

    #[test]
    fn what_is_handled_moves_the_cursor_and_what_is_not_stays() {
        let ann = |seq| message(seq, "person/ann", &[]);
        let own = |seq| message(seq, "operator/op/plan", &[]);
        let bob = |seq| message(seq, "person/ann", &["person/bob"]);
        let polled = |seq, messages: Vec<Message>, open: &[u64], more| {
            let upto = messages.iter().map(|message| message.seq).chain(open.iter().copied()).fold(seq, u64::max);
            Polled { seq, messages, upto, open: open.to_vec(), more }
        };
        check(polled(0, vec![ann(1), own(2), bob(3)], &[], false), &[1], Some((3, &[])));
        check(polled(0, vec![ann(1), own(2), ann(3)], &[], false), &[1], Some((2, &[])));
        check(polled(0, vec![ann(1), own(2), ann(3)], &[], false), &[3], Some((3, &[1])));
        check(polled(0, vec![ann(1), own(2)], &[], false), &[], None);
        check(polled(0, vec![own(1), bob(2)], &[], true), &[], Some((2, &[])));
        // One that was open when the cursor passed it is whole by now.
        check(polled(5, vec![ann(2), ann(6)], &[4], false), &[6], Some((6, &[2, 4])));
        check(polled(5, vec![ann(2), ann(6)], &[4, 7], false), &[2], Some((5, &[4])));
        check(polled(5, vec![ann(2)], &[7], false), &[2], Some((7, &[7])));
    }

    #[test]
    fn inputs_are_what_was_said_to_the_operator() {
        let me: ActorKey = "operator/op".parse().unwrap();
        let is = |from: &str, to: &[&str]| is_input(&message(1, from, to), &me);
        assert!(is("person/ann", &[]) && is("person/ann", &["operator/op/plan"]) && is("operator/other", &[]));
        assert!(!is("person/ann", &["person/bob"]) && !is("operator/op/plan", &[]) && !is("harness/a", &[]));
    }

    macro_rules! unasked {
        ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
            #[async_trait]
            impl Desk for Nobody {
                $(async fn $name(&self, $($arg: $type),*) -> Result<$out, Error> {
                    $(let _ = $arg;)*
                    Err(Error::refused("nobody", "nobody asks"))
                })*
            }
        };
    }

    unasked! {
        register(a: &ActorKey, b: &loopd_protocol::Registration) -> ();
        targets() -> Vec<Target>;
        listen(a: &str) -> Box<dyn crate::Ear>;
        unhandled(a: Option<String>) -> loopd_protocol::Page<loopd_protocol::Wake>;
        conversation(a: ConversationId) -> Conversation;
        work(a: ConversationId) -> Vec<Conversation>;
        messages(a: ConversationId, b: u64, c: u32) -> Vec<Message>;
        lease(a: ConversationId, b: &loopd_protocol::NewLease) -> loopd_protocol::Lease;
        poll(a: ConversationId, b: u32) -> Polled;
        keyed(a: ConversationId, b: Place, c: Option<&ActorKey>, d: &[String]) -> Vec<Keyed>;
        turn(a: ConversationId, b: &loopd_protocol::Turn) -> loopd_protocol::Turned;
        begin(a: ConversationId, b: &str, c: &Open) -> Message;
        update(a: MessageId, b: &loopd_protocol::Update) -> Message;
        end(a: MessageId, b: &loopd_protocol::End) -> Message;
        call(a: HarnessCallId) -> loopd_protocol::HarnessCall;
        cancel(a: HarnessCallId, b: &str) -> loopd_protocol::HarnessCall;
        steer(a: HarnessCallId, b: &str, c: &loopd_protocol::Steer) -> loopd_protocol::Steered;
        question(a: QuestionId) -> loopd_protocol::Question;
        withdraw(a: QuestionId) -> loopd_protocol::Question;
    }
}
