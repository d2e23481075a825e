//! Lists in parts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// What `?cursor=` takes to get the next part; absent at the end. Opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
