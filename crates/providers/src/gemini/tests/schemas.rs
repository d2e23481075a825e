//! What becomes of JSON Schema.

use super::super::schema::{answer, parameters};
use expect_test::{Expect, expect};

#[track_caller]
fn check(schema: &str, expect: Expect) {
    let shown = match parameters(schema) {
        Ok(Some(schema)) => serde_json::to_string(&schema).expect("JSON"),
        Ok(None) => "nothing".into(),
        Err(why) => format!("error: {why}"),
    };
    expect.assert_eq(&shown);
}

/// One property called `x`, its schema alone.
#[track_caller]
fn check_property(schema: &str, expect: Expect) {
    let whole = format!(r#"{{"type":"object","properties":{{"x":{schema}}}}}"#);
    let shown = serde_json::to_string(&parameters(&whole).expect("a schema")).expect("JSON");
    let shown = shown.strip_prefix(r#"{"type":"OBJECT","properties":{"x":"#).expect("an object");
    expect.assert_eq(shown.strip_suffix("}}").expect("its end"));
}

#[test]
fn gem_04_what_the_server_refuses_does_not_go_out() {
    check(
        r##"{"$defs":{"I":{"type":"object","properties":{"id":{"type":"string"}}}},"properties":{"x":{"anyOf":[{"$ref":"#/$defs/I"},{"type":"null"}]}},"additionalProperties":false}"##,
        expect![[
            r#"{"type":"OBJECT","properties":{"x":{"type":"OBJECT","nullable":true,"properties":{"id":{"type":"STRING"}}}}}"#
        ]],
    );
    check(
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"x","title":"T","type":"object","description":"All","properties":{"b":{"type":"integer","default":1,"examples":[1],"minimum":1,"exclusiveMaximum":9,"maximum":9007199254740993},"a":{"type":"array","uniqueItems":true,"minItems":1}},"required":["a","gone","a"],"additionalProperties":{"type":"string"},"patternProperties":{},"unevaluatedProperties":false,"if":{},"then":{},"not":{}}"#,
        expect![[
            r#"{"type":"OBJECT","description":"All","properties":{"b":{"type":"INTEGER","minimum":1,"maximum":9007199254740993},"a":{"type":"ARRAY","items":{"type":"STRING"},"minItems":1}},"required":["a"],"propertyOrdering":["b","a"]}"#
        ]],
    );
}

#[test]
fn a_tool_without_arguments_has_no_parameters() {
    for schema in ["", " ", "{}", "true", r#"{"type":"object"}"#, r#"{"type":"object","properties":{}}"#] {
        check(schema, expect!["nothing"]);
    }
    check("{", expect!["error: its schema is no JSON: EOF while parsing an object at line 1 column 1"]);
    check(r#"{"type":"array"}"#, expect!["error: its arguments are no object"]);
    check(r#"{"anyOf":[{"type":"string"},{"type":"number"}]}"#, expect!["error: its arguments are no object"]);
}

#[test]
fn constants_and_lists() {
    check_property(r#"{"const":"a"}"#, expect![[r#"{"type":"STRING","enum":["a"]}"#]]);
    check_property(r#"{"const":1}"#, expect![[r#"{"type":"INTEGER","description":"One of: 1"}"#]]);
    check_property(
        r#"{"type":"boolean","const":true,"description":"Yes."}"#,
        expect![[r#"{"type":"BOOLEAN","description":"Yes. One of: true"}"#]],
    );
    check_property(r#"{"enum":["a","b",null]}"#, expect![[r#"{"type":"STRING","enum":["a","b"],"nullable":true}"#]]);
    check_property(
        r#"{"type":"integer","enum":[1,2]}"#,
        expect![[r#"{"type":"INTEGER","description":"One of: 1, 2"}"#]],
    );
    check_property(
        r#"{"type":"string","enum":["","a"]}"#,
        expect![[r#"{"type":"STRING","description":"One of: \"\", \"a\""}"#]],
    );
    check_property(
        r#"{"anyOf":[{"const":"a"},{"const":"b"},{"const":"a"}]}"#,
        expect![[r#"{"type":"STRING","enum":["a","b"]}"#]],
    );
    check_property(
        r#"{"enum":["a",1]}"#,
        expect![[r#"{"anyOf":[{"type":"STRING","enum":["a"]},{"type":"INTEGER","description":"One of: 1"}]}"#]],
    );
}

#[test]
fn alternatives_stand_alone() {
    check_property(
        r#"{"type":["string","null"],"description":"d"}"#,
        expect![[r#"{"type":"STRING","description":"d","nullable":true}"#]],
    );
    check_property(
        r#"{"type":["string","integer"],"description":"d"}"#,
        expect![[r#"{"anyOf":[{"type":"STRING","description":"d"},{"type":"INTEGER","description":"d"}]}"#]],
    );
    check_property(
        r#"{"oneOf":[{"type":"string"},{"type":"number"},{"type":"null"}],"description":"d"}"#,
        expect![[
            r#"{"anyOf":[{"type":"STRING","description":"d","nullable":true},{"type":"NUMBER","description":"d","nullable":true}]}"#
        ]],
    );
    check_property(
        r#"{"description":"outer","anyOf":[{"type":"string","description":"inner","pattern":"^a"}]}"#,
        expect![[r#"{"type":"STRING","description":"outer inner Pattern: ^a"}"#]],
    );
    check_property(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}"#,
        expect![[
            r#"{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}},"propertyOrdering":["a","b"]}"#
        ]],
    );
    check_property(r#"{"anyOf":[{"type":"null"}]}"#, expect![[r#"{"type":"STRING","nullable":true}"#]]);
    check_property(
        r#"{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"type":"integer"}]}"#,
        expect![[r#"{"anyOf":[{"type":"STRING","nullable":true},{"type":"INTEGER","nullable":true}]}"#]],
    );
    check_property(
        r#"{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}"#,
        expect![[
            r#"{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}},"required":["a","b"],"propertyOrdering":["a","b"]}"#
        ]],
    );
    // The arguments are one object, whatever the alternatives.
    check(
        r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"k":{"const":"1"}},"required":["k","a"]},{"type":"object","properties":{"k":{"const":"2"}},"required":["k"]}]}"#,
        expect![[
            r#"{"type":"OBJECT","properties":{"a":{"type":"STRING"},"k":{"type":"STRING","enum":["1","2"]}},"required":["k"],"propertyOrdering":["a","k"]}"#
        ]],
    );
}

#[test]
fn kinds_are_found_where_none_is_written() {
    check_property("{}", expect![[r#"{"type":"STRING"}"#]]);
    check_property("true", expect![[r#"{"type":"STRING"}"#]]);
    check_property(
        r#"{"properties":{"a":true,"b":false}}"#,
        expect![[r#"{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}"#]],
    );
    check_property(r#"{"items":{"type":"string"}}"#, expect![[r#"{"type":"ARRAY","items":{"type":"STRING"}}"#]]);
    check_property(r#"{"minimum":0}"#, expect![[r#"{"type":"NUMBER","minimum":0}"#]]);
    check_property(
        r#"{"prefixItems":[{"type":"string"},{"type":"number"}]}"#,
        expect![[r#"{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"}]}}"#]],
    );
    check_property(r#"{"type":"object","additionalProperties":{"type":"string"}}"#, expect![[r#"{"type":"OBJECT"}"#]]);
    check_property(
        r#"{"type":"string","format":"date-time","minLength":1}"#,
        expect![[r#"{"type":"STRING","format":"date-time","minLength":1}"#]],
    );
    check_property(
        r#"{"type":"string","format":"email"}"#,
        expect![[r#"{"type":"STRING","description":"Format: email"}"#]],
    );
    check_property(r#"{"type":"integer","format":"int64"}"#, expect![[r#"{"type":"INTEGER","format":"int64"}"#]]);
}

#[test]
fn references_are_followed_but_not_for_ever() {
    check(
        r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/Node","description":"The tree."}},"$defs":{"Node":{"type":"object","description":"A node.","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}},"up":{"$ref":"#"}}}}}"##,
        expect![[
            r#"{"type":"OBJECT","properties":{"tree":{"type":"OBJECT","description":"The tree. A node.","properties":{"name":{"type":"STRING"},"children":{"type":"ARRAY","items":{"type":"OBJECT"}},"up":{"type":"OBJECT"}},"propertyOrdering":["name","children","up"]}}}"#
        ]],
    );
    check_property(r##"{"$ref":"#/definitions/gone"}"##, expect![[r#"{"type":"STRING"}"#]]);
    check_property(r##"{"$ref":"https://example.com/schema"}"##, expect![[r#"{"type":"STRING"}"#]]);
    // Two references in each of 40 definitions.
    let mut schema = String::from(r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{"##);
    for n in 0..40 {
        let next = n + 1;
        schema.push_str(&format!(
            r##""d{n}":{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d{next}"}},"b":{{"$ref":"#/$defs/d{next}"}}}}}},"##
        ));
    }
    schema.push_str(r#""d40":{"type":"string"}}}"#);
    let size = serde_json::to_string(&parameters(&schema).expect("a schema")).expect("JSON").len();
    assert!(size < 1 << 20, "{size}");
}

#[test]
fn an_answer_may_be_anything_of_which_something_is_known() {
    let shown =
        |schema: &str| answer(schema).map(|schema| schema.map(|schema| serde_json::to_string(&schema).expect("JSON")));
    let list = r#"{"type":"ARRAY","items":{"type":"STRING"}}"#;
    assert_eq!(shown(r#"{"type":"array","items":{"type":"string"}}"#).expect("JSON").as_deref(), Some(list));
    for nothing in ["{}", r#"{"type":"object"}"#, r#"{"type":"array","items":{"type":"object"}}"#] {
        assert_eq!(shown(nothing).expect("JSON"), None, "{nothing}");
    }
    assert!(shown("{").is_err());
}
