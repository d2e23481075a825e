//! Who asks, and what they may do.

use crate::error::Error;
use loopd_protocol::{ActorKey, ActorKind, Role};

/// Whoever asks the platform for something. Their identity was established before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who speaks.
    pub actor: ActorKey,
    /// What they may do.
    pub roles: Vec<Role>,
}

impl Caller {
    /// Somebody with one role.
    #[must_use]
    pub fn new(actor: ActorKey, role: Role) -> Self {
        Self { actor, roles: vec![role] }
    }

    /// Whether they may do everything.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.roles.contains(&Role::Admin)
    }

    /// # Errors
    /// [`Error::Forbidden`] unless they have one of these roles, or are an admin.
    pub fn must_be(&self, roles: &[Role]) -> Result<(), Error> {
        if self.is_admin() || self.roles.iter().any(|role| roles.contains(role)) {
            return Ok(());
        }
        let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
        Err(Error::Forbidden(format!("{} may not do this: it needs the role {}", self.actor, names.join(" or "))))
    }

    /// # Errors
    /// [`Error::Forbidden`] for whoever only reads.
    pub fn must_write(&self) -> Result<(), Error> {
        self.must_be(&[Role::Member, Role::Operator, Role::Harness])
    }

    /// Whether they may speak as this Actor: as themselves, or as a role of the Operator that they are.
    #[must_use]
    pub fn speaks_as(&self, actor: &ActorKey) -> bool {
        self.actor == *actor || (actor.kind() == ActorKind::Operator && actor.owner() == self.actor)
    }
}
