//! The built-in page: what it is made of, and the policy that it runs under. `tests/page/page.mjs` uses it in a browser.

use crate::world::{Ask, Got, World};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

async fn page() -> Got {
    let got = World::new().await.send(Ask::get("/")).await;
    assert_eq!((got.status, got.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(got.body.len() > 10_000, "this is no page");
    got
}

/// Everything that stands in an element of this name.
fn inside(html: &str, tag: &str) -> Vec<String> {
    let open = format!("<{tag}");
    let elements = html.match_indices(&open).filter_map(|(at, _)| {
        let rest = &html[at + open.len()..];
        // `<style` and not `<styled`; with attributes it would be another element for the policy.
        let rest = rest.strip_prefix('>')?;
        rest.split_once(&format!("</{tag}>")).map(|(inside, _)| inside.to_owned())
    });
    elements.collect()
}

#[tokio::test(start_paused = true)]
async fn the_policy_lets_its_one_script_and_one_style_in_and_nothing_else() {
    let got = page().await;
    let html = got.text();
    let digest = |tag: &str| {
        let elements = inside(&html, tag);
        assert_eq!((elements.len(), html.matches(&format!("<{tag}")).count()), (1, 1), "{tag}");
        assert_eq!(html.matches(&format!("</{tag}>")).count(), 1, "{tag}");
        STANDARD.encode(Sha256::digest(elements.first().unwrap()))
    };
    let (script, style) = (digest("script"), digest("style"));
    assert_eq!(
        got.header("content-security-policy"),
        format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'"
        )
    );
}

/// Ways in which text could become more than text, and addresses elsewhere.
fn found(html: &str) -> Vec<String> {
    const NEVER: [&str; 19] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "setHTMLUnsafe",
        "document.write",
        "createContextualFragment",
        "DOMParser",
        "srcdoc",
        "eval(",
        "new Function",
        "import(",
        "createPolicy",
        "javascript:",
        "@import",
        "url(",
        "http://",
        "https://",
        "src=",
        "'style'",
    ];
    let mut found: Vec<String> = NEVER.iter().filter(|one| html.contains(**one)).map(|one| (*one).to_owned()).collect();
    let script = inside(html, "script").pop().unwrap_or_default();
    let markup = html.replace(&script, "");
    for tag in markup.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
        let names = tag.split([' ', '\n', '"']).filter_map(|word| word.split_once('=')).map(|(name, _)| name);
        found.extend(names.filter(|name| name.starts_with("on") || *name == "style").map(str::to_owned));
    }
    found
}

#[tokio::test(start_paused = true)]
async fn the_page_makes_nothing_of_text_but_text_and_asks_nobody_else() {
    // Each way is found where it is.
    for bad in [
        "<a onclick=x>",
        "node.innerHTML = x",
        "<p style=\"color:red\">",
        "eval(x)",
        "<img src=x>",
        "fetch('https://a.example')",
        "document.write(x)",
    ] {
        assert!(!found(bad).is_empty(), "{bad}");
    }
    assert_eq!(found(&page().await.text()), Vec::<String>::new());
}
