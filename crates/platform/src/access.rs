//! Tokens and the audit log.

use crate::rows::{EVERYTHING, Tries, body, expect, hashed, put, record, request_key};
use crate::{Caller, Error, Paging, Platform};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use loopd_kernel::Digest;
use loopd_protocol::{ActorKey, AuditEntry, NewToken, Page, Role, Token, TokenId, TokenMade};
use loopd_store::{Batch, Place, Record, RecordId, Table, Write};
use std::time::Duration;

/// What every secret begins with, so that scanners know it.
const PREFIX: &str = "loopd_";

/// What the token of a browser is called in lists.
const BROWSER: &str = "browser";

/// The key under which the store knows a secret. The secret has 256 random bits, so nobody finds it by trying, and a
/// plain hash is enough.
fn hash(secret: &str) -> String {
    Digest::sha256(&[b"loopd token", secret.as_bytes()]).to_string()
}

impl Platform {
    /// Makes a token. Its secret is in the answer and nowhere else, so a key that has made one can only say which: what
    /// was lost with an answer is revoked, and made anew with another key. An empty key makes one each time.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::Invalid`]; [`Error::Conflict`] `key_taken`.
    pub async fn make_token(&self, by: &Caller, key: &str, new: NewToken) -> Result<TokenMade, Error> {
        by.must_be(&[Role::Admin])?;
        if new.roles.is_empty() || new.roles.len() > 5 {
            return Err(Error::invalid("roles", "1 to 5 of admin, member, operator, harness, viewer"));
        }
        if new.name.chars().count() > 200 {
            return Err(Error::invalid("name", "at most 200 characters"));
        }
        let days = new.days.map(|days| if (1..=3660).contains(&days) { Ok(u64::from(days)) } else { Err(()) });
        let days = days.transpose().map_err(|()| Error::invalid("days", "1 to 3660"))?;
        let good_for = days.map(|days| Duration::from_secs(days * 86_400));
        // The key of its row is the hash of its secret: it is its identity that knows the key of the request.
        let id = request_key(&by.actor, key).map(|key| hashed(&[b"loopd token of a key", key.as_bytes()]));
        let id = id.unwrap_or(RecordId(self.new_id()));
        let roles: Vec<_> = new.roles.iter().map(|role| role.name()).collect();
        let detail = format!("{} as {}", new.actor, roles.join(" "));
        let noted = self.noting(by, "token.create", &TokenId(id.0).to_string(), &detail);
        self.new_token(id, (new.name, new.actor, new.roles), good_for, noted).await
    }

    /// Signs a browser in: its token is good as this Caller for so long. Whether it may come in was decided before.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn sign_in(&self, who: &Caller, good_for: Duration, from: &str) -> Result<TokenMade, Error> {
        let id = self.new_id();
        let noted = self.noting(who, "sign_in", &TokenId(id).to_string(), &format!("from {from}"));
        let whose = (BROWSER.to_owned(), who.actor.clone(), who.roles.clone());
        self.new_token(RecordId(id), whose, Some(good_for), noted).await
    }

    /// The token, and what the audit log says of it, in one commit.
    async fn new_token(
        &self,
        id: RecordId,
        (name, actor, roles): (String, ActorKey, Vec<Role>),
        good_for: Option<Duration>,
        noted: Write,
    ) -> Result<TokenMade, Error> {
        let secret = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(self.entropy.salt()));
        let created_at = self.now();
        let good_for = good_for.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let token = Token {
            id: TokenId(id.0),
            name,
            actor,
            roles,
            created_at,
            expires_at: good_for.map(|time| created_at.saturating_add(time)),
            revoked_at: None,
        };
        let row = Record { key: Some(hash(&secret)), ..record(Table::Token, id, EVERYTHING, &token) };
        let mut tries = Tries::default();
        // Only who knows the secret finds it under its hash.
        while self.by_key(Table::Token, EVERYTHING, &hash(&secret)).await?.is_none() {
            if self.get(Table::Token, id).await?.is_some() {
                let detail = format!(
                    "the key has made {}, whose secret was shown then and is shown no more: revoke it, and make another \
                     with a new key",
                    token.id
                );
                return Err(Error::conflict("key_taken", detail));
            }
            let expect = vec![expect(Table::Token, id, None)];
            let writes = vec![put(row.clone(), Place::Next), noted.clone()];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
        Ok(TokenMade { token, secret })
    }

    /// A part of the list of tokens, the oldest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::Invalid`] for a cursor that no list returned.
    pub async fn tokens(&self, by: &Caller, paging: Paging) -> Result<Page<Token>, Error> {
        by.must_be(&[Role::Admin])?;
        let (rows, next) = self.page((Table::Token, EVERYTHING), false, &paging).await?;
        Ok(Page { items: rows.iter().map(body).collect::<Result<_, _>>()?, next })
    }

    /// Revokes a token: the next request with it is refused.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::NotFound`].
    pub async fn revoke_token(&self, by: &Caller, id: TokenId) -> Result<Token, Error> {
        by.must_be(&[Role::Admin])?;
        self.end_token(by, RecordId(id.0), "token.revoke").await
    }

    /// Revokes the token of this secret: whoever has it may give it back. One that nobody has is none already.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn sign_out(&self, by: &Caller, secret: &str) -> Result<(), Error> {
        match self.by_key(Table::Token, EVERYTHING, &hash(secret)).await? {
            Some(row) => self.end_token(by, row.id, "sign_out").await.map(drop),
            None => Ok(()),
        }
    }

    async fn end_token(&self, by: &Caller, id: RecordId, action: &str) -> Result<Token, Error> {
        let known = TokenId(id.0);
        let mut tries = Tries::default();
        loop {
            let row = self.get(Table::Token, id).await?.ok_or_else(|| Error::not_found("token", known))?;
            let token: Token = body(&row)?;
            if token.revoked_at.is_some() {
                return Ok(token);
            }
            let token = Token { revoked_at: Some(self.now()), ..token };
            let next = Record { key: row.key.clone(), ..record(Table::Token, row.id, EVERYTHING, &token) };
            let expect = vec![expect(Table::Token, row.id, Some(row.rev))];
            let writes = vec![put(next, Place::Keep), self.noting(by, action, &known.to_string(), "")];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Who speaks with this secret; `None` when it is unknown, revoked or over.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>, Error> {
        if !secret.starts_with(PREFIX) || secret.len() > 100 {
            return Ok(None);
        }
        // The reads of the store give no key back, and need not: it is looked up by the hash.
        let Some(row) = self.by_key(Table::Token, EVERYTHING, &hash(secret)).await? else { return Ok(None) };
        let token: Token = body(&row)?;
        let over = token.revoked_at.is_some() || token.expires_at.is_some_and(|at| at <= self.now());
        Ok((!over).then_some(Caller { actor: token.actor, roles: token.roles }))
    }

    /// A part of the audit log, the newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::Invalid`] for a cursor that no list returned.
    pub async fn audit(&self, by: &Caller, paging: Paging) -> Result<Page<AuditEntry>, Error> {
        by.must_be(&[Role::Admin])?;
        let (rows, next) = self.page((Table::Audit, EVERYTHING), true, &paging).await?;
        let entry = |row: &Record| body(row).map(|entry| AuditEntry { number: row.place, ..entry });
        Ok(Page { items: rows.iter().map(entry).collect::<Result<_, _>>()?, next })
    }

    /// Adds a line to the audit log. Neither secrets nor what people said belong there.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn note(&self, by: &Caller, action: &str, subject: &str, detail: &str) -> Result<(), Error> {
        let row = self.line(by, action, subject, detail);
        let mut tries = Tries::default();
        while self.get(Table::Audit, row.id).await?.is_none() {
            let expect = vec![expect(Table::Audit, row.id, None)];
            self.attempt(&mut tries, Batch { expect, writes: vec![put(row.clone(), Place::Next)] }).await?;
        }
        Ok(())
    }

    /// A line of the audit log, in the commit of what it tells.
    pub(crate) fn noting(&self, by: &Caller, action: &str, subject: &str, detail: &str) -> Write {
        put(self.line(by, action, subject, detail), Place::Next)
    }

    fn line(&self, by: &Caller, action: &str, subject: &str, detail: &str) -> Record {
        let detail = detail.chars().take(1000).collect();
        let (action, subject) = (action.to_owned(), subject.chars().take(200).collect());
        let entry = AuditEntry { number: 0, at: self.now(), actor: by.actor.clone(), action, subject, detail };
        record(Table::Audit, RecordId(self.new_id()), EVERYTHING, &entry)
    }
}
