//! Tokens and the audit log.

use crate::rows::{EVERYTHING, Tries, body, expect, put, record};
use crate::{Caller, Error, Paging, Platform};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use loopd_kernel::Digest;
use loopd_protocol::{AuditEntry, NewToken, Page, Role, Token, TokenId, TokenMade};
use loopd_store::{Batch, Place, Record, RecordId, Table, Write};

/// What every secret begins with, so that scanners know it.
const PREFIX: &str = "loopd_";

/// The key under which the store knows a secret. The secret has 256 random bits, so nobody finds it by trying, and a
/// plain hash is enough.
fn hash(secret: &str) -> String {
    Digest::sha256(&[b"loopd token", secret.as_bytes()]).to_string()
}

impl Platform {
    /// Makes a token. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::Invalid`].
    pub async fn make_token(&self, by: &Caller, new: NewToken) -> Result<TokenMade, Error> {
        by.must_be(&[Role::Admin])?;
        if new.roles.is_empty() || new.roles.len() > 5 {
            return Err(Error::invalid("roles", "1 to 5 of admin, member, operator, harness, viewer"));
        }
        if new.name.chars().count() > 200 {
            return Err(Error::invalid("name", "at most 200 characters"));
        }
        let days = new.days.map(|days| if (1..=3660).contains(&days) { Ok(i64::from(days)) } else { Err(()) });
        let days = days.transpose().map_err(|()| Error::invalid("days", "1 to 3660"))?;
        let secret = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(self.entropy.salt()));
        let token = Token {
            id: TokenId(self.new_id()),
            name: new.name,
            actor: new.actor,
            roles: new.roles,
            created_at: self.now(),
            expires_at: days.map(|days| self.now().saturating_add(days * 86_400_000)),
            revoked_at: None,
        };
        let id = RecordId(token.id.0);
        let row = Record { key: Some(hash(&secret)), ..record(Table::Token, id, EVERYTHING, &token) };
        let mut tries = Tries::default();
        while self.get(Table::Token, id).await?.is_none() {
            let expect = vec![expect(Table::Token, id, None)];
            self.attempt(&mut tries, Batch { expect, writes: vec![put(row.clone(), Place::Next)] }).await?;
        }
        let roles: Vec<_> = token.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
        let detail = format!("{} as {}", token.actor, roles.join(" "));
        self.note(by, "token.create", &token.id.to_string(), &detail).await?;
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
        let mut tries = Tries::default();
        loop {
            let row = self.get(Table::Token, RecordId(id.0)).await?.ok_or_else(|| Error::not_found("token", id))?;
            let token: Token = body(&row)?;
            if token.revoked_at.is_some() {
                self.note(by, "token.revoke", &id.to_string(), "").await?;
                return Ok(token);
            }
            let token = Token { revoked_at: Some(self.now()), ..token };
            let next = Record { key: row.key.clone(), ..record(Table::Token, row.id, EVERYTHING, &token) };
            let expect = vec![expect(Table::Token, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes: vec![put(next, Place::Keep)] }).await?;
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
