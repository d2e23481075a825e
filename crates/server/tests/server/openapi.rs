//! The description is current, and says enough for a fuzzer to be let loose on it.

use crate::world::description;
use expect_test::expect_file;
use std::collections::BTreeSet;

#[test]
fn the_committed_description_is_current() {
    // `UPDATE_EXPECT=1 cargo test -p loopd-server openapi` writes it anew.
    expect_file!["../../openapi.json"].assert_eq(&loopd_server::openapi());
}

#[test]
fn every_operation_is_whole() {
    let document = description();
    assert_eq!(document["openapi"], "3.1.0");
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let asked = document["security"].as_array().unwrap().iter().flat_map(|one| one.as_object().unwrap().keys());
    assert_eq!(schemes.keys().collect::<BTreeSet<_>>(), asked.collect());
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap()), "named twice: {at}");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{at}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2') || status.starts_with('3')), "{at}");
            for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
                let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Problem", "{at} {status}");
            }
            let has = |statuses: &[&str]| statuses.iter().all(|status| responses.contains_key(*status));
            assert!(has(&["400", "403", "431", "500", "503"]), "{at}");
            // Whoever may come in without a token is named; all others are asked for one, as the whole document says.
            let open = matches!(
                path.as_str(),
                "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/sign-in" | "/v1/sign-in"
            );
            assert_eq!(operation.get("security").is_some(), open, "{at}");
            assert!(open || has(&["401", "429"]), "{at}");
            assert!(operation.get("requestBody").is_none() || has(&["408", "413", "415", "422"]), "{at}");
            assert!(open || method == "get" || has(&["409", "507"]), "{at}");
            let declared = operation["parameters"].as_array().into_iter().flatten();
            let declared: BTreeSet<_> =
                declared.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap()).collect();
            let named: BTreeSet<_> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(declared, named, "{at}");
        }
    }
    assert!(names.len() > 45, "{}", names.len());
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a serde_json::Value, found: &mut BTreeSet<&'a str>) {
        if let Some(target) = value.get("$ref").and_then(serde_json::Value::as_str) {
            found.insert(target);
        }
        value.as_object().into_iter().flat_map(|map| map.values()).for_each(|value| references(value, found));
        value.as_array().into_iter().flatten().for_each(|value| references(value, found));
    }
    let mut found = BTreeSet::new();
    references(description(), &mut found);
    assert!(found.len() > 20);
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(description().pointer(pointer).is_some(), "{target}");
    }
}
