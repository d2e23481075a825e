//! Schemas that are combined out of several.

use super::{Kind, Schema};

impl Schema {
    /// Null and nothing else.
    const fn is_null(&self) -> bool {
        self.kind.is_none() && self.nullable && self.any_of.is_empty()
    }

    /// Puts `description` before its own.
    pub(super) fn describe(&mut self, description: String) {
        if self.any_of.is_empty() {
            let own = std::mem::replace(&mut self.description, description);
            if !own.is_empty() {
                self.hint(&own);
            }
            return;
        }
        // Beside alternatives nothing else may stand.
        for variant in self.any_of.iter_mut().filter(|variant| variant.description.is_empty()) {
            variant.description.clone_from(&description);
        }
    }

    /// Both: what is valid must be valid for `self` and for `other`.
    pub(super) fn absorb(&mut self, other: Self) {
        if self.kind.is_none() && self.any_of.is_empty() {
            let description = std::mem::take(&mut self.description);
            *self = other;
            if !description.is_empty() {
                self.describe(description);
            }
            return;
        }
        if self.kind != Some(Kind::Object) || other.kind != Some(Kind::Object) {
            return;
        }
        let new: Vec<_> = other.properties.0.into_iter().filter(|(name, _)| !self.properties.has(name)).collect();
        self.properties.0.extend(new);
        self.required.extend(other.required);
        self.put_in_order();
    }

    /// One of `variants`, besides what `self` says.
    pub(super) fn choose(&mut self, variants: Vec<Self>) {
        if variants.is_empty() {
            return;
        }
        let nullable = variants.iter().any(|variant| variant.nullable);
        let flat = variants
            .into_iter()
            .filter(|variant| !variant.is_null())
            .flat_map(|variant| if variant.any_of.is_empty() { vec![variant] } else { variant.any_of });
        let mut variants: Vec<Self> = Vec::new();
        for variant in flat.map(Self::complete) {
            if !variants.iter().any(|known| same(known, &variant)) {
                variants.push(variant);
            }
        }
        if self.kind.is_some() || !self.any_of.is_empty() {
            self.widen(variants);
            return;
        }
        if variants.len() > 1 && variants.iter().all(|variant| !variant.values.is_empty()) {
            variants = vec![one_list(variants)];
        }
        let nullable = nullable || self.nullable;
        match <[Self; 1]>::try_from(variants) {
            Ok([only]) => self.absorb(only),
            Err(several) => {
                self.any_of = several;
                for variant in &mut self.any_of {
                    variant.nullable |= nullable;
                }
                let description = std::mem::take(&mut self.description);
                if !description.is_empty() {
                    self.describe(description);
                }
            }
        }
        self.nullable = nullable && self.any_of.is_empty();
    }

    /// Alternatives beside a kind of its own: what properties they have, the model may write as any of them wants it.
    fn widen(&mut self, variants: Vec<Self>) {
        if self.kind != Some(Kind::Object) {
            return;
        }
        let mut new: Vec<(String, Vec<Self>)> = Vec::new();
        for (name, schema) in variants.into_iter().flat_map(|variant| variant.properties.0) {
            match new.iter_mut().find(|(known, _)| *known == name) {
                Some((_, schemas)) => schemas.push(schema),
                None if self.properties.has(&name) => {}
                None => new.push((name, vec![schema])),
            }
        }
        for (name, schemas) in new {
            let mut property = Self::default();
            property.choose(schemas);
            self.properties.0.push((name, property.complete()));
        }
        self.put_in_order();
    }

    /// Alternative objects as one that has all their properties, of which those are required that all require.
    pub(super) fn unite_objects(&mut self) {
        let is_object = |variant: &Self| variant.kind == Some(Kind::Object);
        if self.any_of.is_empty() || !self.any_of.iter().all(is_object) {
            return;
        }
        let variants = std::mem::take(&mut self.any_of);
        let mut required = variants.first().map(|first| first.required.clone()).unwrap_or_default();
        required.retain(|name| variants.iter().all(|variant| variant.required.contains(name)));
        *self = Self { kind: Some(Kind::Object), ..Self::default() };
        self.widen(variants);
        self.required = required;
    }

    /// The order of the properties, and only such required names as there are: both are checked by the server.
    pub(super) fn put_in_order(&mut self) {
        let properties = &self.properties;
        self.required.retain(|name| properties.has(name));
        let mut distinct: Vec<String> = Vec::new();
        for name in self.required.drain(..) {
            if !distinct.contains(&name) {
                distinct.push(name);
            }
        }
        self.required = distinct;
        self.property_ordering = match properties.0.len() {
            0 | 1 => Vec::new(),
            _ => properties.0.iter().map(|(name, _)| name.clone()).collect(),
        };
    }
}

/// Lists of texts as one list.
fn one_list(variants: Vec<Schema>) -> Schema {
    let mut list = Schema { kind: Some(Kind::String), ..Schema::default() };
    for variant in variants {
        for value in variant.values {
            if !list.values.contains(&value) {
                list.values.push(value);
            }
        }
    }
    list
}

fn same(left: &Schema, right: &Schema) -> bool {
    let text = |schema: &Schema| serde_json::to_string(schema).unwrap_or_default();
    text(left) == text(right)
}
