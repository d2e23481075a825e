//! A server that is reached through a proxy, and settings of connections that cannot be right.

use super::support::{call, user};
use expect_test::{Expect, expect};
use loopd_providers::{Connection, ModelConfig, OpenAiConfig, from_config_with};
use looptest::fake::{FakeModel, Script};

fn config(connection: Connection) -> ModelConfig {
    let config = OpenAiConfig { api_key_env: Some("KEY".into()), ..OpenAiConfig::new("m").at("http://models.test/v1") };
    ModelConfig::Openai(config).reached(connection)
}

/// Nobody knows the host; the proxy is asked for it.
#[tokio::test]
async fn a_proxy_is_asked_in_place_of_the_server() {
    let fake = FakeModel::start(Script::empty().says("through")).await;
    let proxy = Some(fake.url().to_owned());
    let model = from_config_with(&config(Connection { proxy, ..Connection::default() }), &|_| Some("sk-1".into()));
    let answer = call(&model.expect("a model"), &[user("hi")]).await.expect("an answer");
    assert_eq!(answer.reply.joined_text(), "through");
    fake.expect_calls(1);
}

#[track_caller]
fn refused(connection: Connection, expected: Expect) {
    let error = from_config_with(&config(connection), &|_| Some("sk-1".into())).err().expect("an error");
    expected.assert_eq(&error.to_string());
}

#[test]
fn what_cannot_be_right_is_refused_before_any_call() {
    let proxy = |url: &str| Connection { proxy: Some(url.into()), ..Connection::default() };
    refused(
        proxy("socks5://127.0.0.1:1"),
        expect!["connection.proxy: must begin with http:// or https://, or be `none`"],
    );
    refused(
        proxy("http://me:secret@proxy.test"),
        expect!["connection.proxy: must hold no password; HTTPS_PROXY in the environment may"],
    );
    refused(proxy("nowhere"), expect!["connection.proxy: relative URL without a base"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "no certificate").expect("written");
    let authorities = |name: std::path::PathBuf| Connection { ca_file: Some(name), ..Connection::default() };
    let error = |path| {
        from_config_with(&config(authorities(path)), &|_| Some("sk-1".into())).err().expect("an error").to_string()
    };
    assert!(error(file).ends_with("ca.pem holds no certificate in PEM form"));
    assert!(error(folder.path().join("gone.pem")).contains("gone.pem: No such file"));
}
