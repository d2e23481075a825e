//! Native function tools: their typed arguments are their schema.

use crate::call;
use expect_test::expect;
use loopd_kernel::EffectClass;
use loopd_runtime::{Tool as _, ToolError, tool_fn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to refund.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Refund {
    /// The order.
    order: u64,
    /// The amount in cents.
    cents: u32,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Receipt {
    id: String,
}

async fn refund(args: Refund) -> Result<Receipt, ToolError> {
    match args.order {
        0 => Err(ToolError::did_not_happen("refund.no_order", "there is no order 0")),
        order => Ok(Receipt { id: format!("{order}-{}-{}", args.cents, args.reason.unwrap_or_default()) }),
    }
}

#[tokio::test]
async fn typed_arguments_become_the_schema() {
    let tool = tool_fn("refund", "Refunds an order.", refund);
    let schema: serde_json::Value = serde_json::from_str(&tool.offer().parameters).unwrap();
    expect![[r#"
        {
          "$schema": "https://json-schema.org/draft/2020-12/schema",
          "additionalProperties": false,
          "description": "What to refund.",
          "properties": {
            "cents": {
              "description": "The amount in cents.",
              "format": "uint32",
              "minimum": 0,
              "type": "integer"
            },
            "order": {
              "description": "The order.",
              "format": "uint64",
              "minimum": 0,
              "type": "integer"
            },
            "reason": {
              "type": [
                "string",
                "null"
              ]
            }
          },
          "required": [
            "order",
            "cents"
          ],
          "title": "Refund",
          "type": "object"
        }
    "#]]
    .assert_eq(&format!("{schema:#}\n"));
    assert_eq!(tool.terms().class, EffectClass::Once);
    assert_eq!(tool.class(EffectClass::Read).terms().class, EffectClass::Read);
}

#[tokio::test]
async fn wrong_arguments_are_typed_errors_and_nothing_runs() {
    let tool = tool_fn("refund", "Refunds an order.", refund);
    let mut out = String::new();
    for args in [
        r#"{"order":18446744073709551615,"cents":5,"reason":"late"}"#,
        r#"{"order":7,"cents":5}"#,
        r#"{"order":0,"cents":5}"#,
        "",
        "{}",
        r#"{"order":"7","cents":5}"#,
        r#"{"order":7,"cents":-5}"#,
        r#"{"order":7,"cents":5,"currency":"USD"}"#,
        r#"{"order":7,"order":8,"cents":5}"#,
        r#"{"order":1e400,"cents":5}"#,
        r#"[7,5]"#,
        r#"{"order":7"#,
    ] {
        out.push_str(&format!("{args}\n  {}\n", call(&tool, args).await));
    }
    expect![[r#"
        {"order":18446744073709551615,"cents":5,"reason":"late"}
          {"id":"18446744073709551615-5-late"}
        {"order":7,"cents":5}
          {"id":"7-5-"}
        {"order":0,"cents":5}
          ! refund.no_order: there is no order 0

          ! tool.invalid_args: missing field `order` at line 1 column 2
        {}
          ! tool.invalid_args: missing field `order` at line 1 column 2
        {"order":"7","cents":5}
          ! tool.invalid_args: invalid type: string "7", expected u64 at line 1 column 12
        {"order":7,"cents":-5}
          ! tool.invalid_args: invalid value: integer `-5`, expected u32 at line 1 column 21
        {"order":7,"cents":5,"currency":"USD"}
          ! tool.invalid_args: unknown field `currency`, expected one of `order`, `cents`, `reason` at line 1 column 31
        {"order":7,"order":8,"cents":5}
          ! tool.invalid_args: duplicate field `order` at line 1 column 18
        {"order":1e400,"cents":5}
          ! tool.invalid_args: number out of range at line 1 column 14
        [7,5]
          ! tool.invalid_args: invalid length 2, expected struct Refund with 3 elements at line 1 column 5
        {"order":7
          ! tool.invalid_args: EOF while parsing an object at line 1 column 10
    "#]]
    .assert_eq(&out);
}
