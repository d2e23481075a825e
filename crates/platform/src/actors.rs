//! Who can be addressed.

use crate::rows::{EVERYTHING, Tries, body, expect, named, put, record};
use crate::{Caller, Error, Paging, Platform};
use loopd_protocol::{Actor, ActorKey, ActorKind, Page, Registration, Role};
use loopd_store::{Batch, Place, Record, Table};
use serde::{Deserialize, Serialize};

/// An Actor as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    key: ActorKey,
    name: String,
    description: String,
    online_until: Option<i64>,
    #[serde(default)]
    demo: bool,
    created_at: i64,
}

impl Platform {
    /// Announces an Actor, or renews its lease. Operators and Harnesses announce themselves and their roles, people
    /// themselves, and admins anybody.
    ///
    /// # Errors
    /// [`Error::Forbidden`], [`Error::Invalid`].
    pub async fn register(&self, by: &Caller, key: &ActorKey, registration: Registration) -> Result<Actor, Error> {
        by.must_write()?;
        if !by.is_admin() {
            match key.kind() {
                ActorKind::Person => {}
                ActorKind::Operator => by.must_be(&[Role::Operator])?,
                ActorKind::Harness => by.must_be(&[Role::Harness])?,
            }
            if !by.speaks_as(key) {
                return Err(Error::Forbidden(format!("{} may not announce {key}", by.actor)));
            }
        }
        let online_until = (key.kind() != ActorKind::Person)
            .then(|| self.now().saturating_add(i64::from(registration.lease_s) * 1000));
        if !(1..=3600).contains(&registration.lease_s) {
            return Err(Error::invalid("lease_s", "1 to 3600 seconds"));
        }
        self.announce(key, registration.name, registration.description, (online_until, false)).await
    }

    /// Announces an Actor in the platform's own name.
    pub(crate) async fn announce(
        &self,
        key: &ActorKey,
        name: String,
        description: String,
        (online_until, demo): (Option<i64>, bool),
    ) -> Result<Actor, Error> {
        if name.trim().is_empty() || name.chars().count() > 200 {
            return Err(Error::invalid("name", "1 to 200 characters"));
        }
        if description.chars().count() > 2000 {
            return Err(Error::invalid("description", "at most 2,000 characters"));
        }
        let id = named(key.as_str());
        let mut tries = Tries::default();
        loop {
            let found = self.get(Table::Actor, id).await?;
            let before: Option<Stored> = found.as_ref().map(body).transpose()?;
            let created_at = before.as_ref().map_or_else(|| self.now(), |before| before.created_at);
            let (name, description) = (name.clone(), description.clone());
            let wanted = Stored { key: key.clone(), name, description, online_until, demo, created_at };
            if before.as_ref() == Some(&wanted) {
                return Ok(self.shown(wanted));
            }
            let row = Record { key: Some(key.to_string()), ..record(Table::Actor, id, EVERYTHING, &wanted) };
            let expect = vec![expect(Table::Actor, id, found.map(|found| found.rev))];
            self.attempt(&mut tries, Batch { expect, writes: vec![put(row, Place::Keep)] }).await?;
        }
    }

    /// The Actor.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn actor(&self, key: &ActorKey) -> Result<Actor, Error> {
        let found = self.get(Table::Actor, named(key.as_str())).await?;
        let found = found.ok_or_else(|| Error::not_found("actor", key))?;
        Ok(self.shown(body(&found)?))
    }

    /// Whether there is such an Actor, or whoever the role is of.
    pub(crate) async fn is_known(&self, key: &ActorKey) -> Result<bool, Error> {
        Ok(self.get(Table::Actor, named(key.as_str())).await?.is_some()
            || self.get(Table::Actor, named(key.owner().as_str())).await?.is_some())
    }

    /// A part of the list of Actors, in the order in which they were first announced.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that no list returned.
    pub async fn actors(&self, kind: Option<ActorKind>, paging: Paging) -> Result<Page<Actor>, Error> {
        let (records, next) = self.page((Table::Actor, EVERYTHING), false, &paging).await?;
        let actors = records.iter().map(|found| body(found).map(|stored| self.shown(stored)));
        let wanted = |actor: &Actor| kind.is_none_or(|kind| kind == actor.key.kind());
        let items = actors.filter(|actor| actor.as_ref().map_or(true, wanted)).collect::<Result<_, _>>()?;
        Ok(Page { items, next })
    }

    fn shown(&self, stored: Stored) -> Actor {
        let Stored { key, name, description, online_until, demo, created_at } = stored;
        let online = online_until.is_none_or(|until| until > self.now());
        Actor { key, name, description, online_until, online, demo, created_at }
    }
}
