//! The table `[limits]` of the settings file: whatever is not in it keeps its usual value.

use loopd_platform::Config;
use loopd_server::Limits as ServerLimits;
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// Limits that somebody has set. None of them can be zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    message_bytes: Option<NonZeroUsize>,
    message_total_bytes: Option<NonZeroU64>,
    message_open_s: Option<NonZeroU32>,
    list_bytes: Option<NonZeroU64>,
    message_blocks: Option<NonZeroU64>,
    shown_blocks: Option<NonZeroUsize>,
    artifact_bytes: Option<NonZeroUsize>,
    members: Option<NonZeroUsize>,
    page: Option<NonZeroUsize>,
    history_messages: Option<NonZeroUsize>,
    history_bytes: Option<NonZeroUsize>,
    target_slots: Option<NonZeroU32>,
    json_bytes: Option<NonZeroUsize>,
    header_bytes: Option<NonZeroUsize>,
    headers: Option<NonZeroUsize>,
    head_timeout_s: Option<NonZeroU64>,
    body_timeout_s: Option<NonZeroU64>,
    connections: Option<NonZeroUsize>,
    uploads: Option<NonZeroUsize>,
    streams: Option<NonZeroUsize>,
    streams_per_token: Option<NonZeroUsize>,
    feeds: Option<NonZeroUsize>,
    heartbeat_s: Option<NonZeroU64>,
    requests_per_s: Option<NonZeroU32>,
    requests_burst: Option<NonZeroU32>,
    operator_requests_per_s: Option<NonZeroU32>,
    operator_requests_burst: Option<NonZeroU32>,
    failures_per_minute: Option<NonZeroU32>,
    code_s: Option<NonZeroU64>,
    codes: Option<NonZeroUsize>,
    grace_s: Option<NonZeroU64>,
}

impl Limits {
    /// The platform's, with what is set here.
    pub fn platform(&self, usual: Config) -> Config {
        let size = |set: Option<NonZeroUsize>, usual| set.map_or(usual, NonZeroUsize::get);
        Config {
            message_bytes: size(self.message_bytes, usual.message_bytes),
            message_total_bytes: self.message_total_bytes.map_or(usual.message_total_bytes, NonZeroU64::get),
            message_open_s: self.message_open_s.map_or(usual.message_open_s, NonZeroU32::get),
            list_bytes: self.list_bytes.map_or(usual.list_bytes, NonZeroU64::get),
            message_blocks: self.message_blocks.map_or(usual.message_blocks, NonZeroU64::get),
            shown_blocks: size(self.shown_blocks, usual.shown_blocks),
            artifact_bytes: size(self.artifact_bytes, usual.artifact_bytes),
            members: size(self.members, usual.members),
            page: size(self.page, usual.page),
            history_messages: size(self.history_messages, usual.history_messages),
            history_bytes: size(self.history_bytes, usual.history_bytes),
            target_slots: self.target_slots.map_or(usual.target_slots, NonZeroU32::get),
            ..usual
        }
    }

    /// The server's, with what is set here.
    pub fn server(&self, usual: &ServerLimits) -> ServerLimits {
        let size = |set: Option<NonZeroUsize>, usual| set.map_or(usual, NonZeroUsize::get);
        let rate = |set: Option<NonZeroU32>, usual| set.map_or(usual, NonZeroU32::get);
        let time = |set: Option<NonZeroU64>, usual| set.map_or(usual, |seconds| Duration::from_secs(seconds.get()));
        ServerLimits {
            json_bytes: size(self.json_bytes, usual.json_bytes),
            header_bytes: size(self.header_bytes, usual.header_bytes),
            headers: size(self.headers, usual.headers),
            head_timeout: time(self.head_timeout_s, usual.head_timeout),
            body_timeout: time(self.body_timeout_s, usual.body_timeout),
            connections: size(self.connections, usual.connections),
            uploads: size(self.uploads, usual.uploads),
            streams: size(self.streams, usual.streams),
            streams_per_token: size(self.streams_per_token, usual.streams_per_token),
            feeds: size(self.feeds, usual.feeds),
            heartbeat: time(self.heartbeat_s, usual.heartbeat),
            requests_per_s: rate(self.requests_per_s, usual.requests_per_s),
            requests_burst: rate(self.requests_burst, usual.requests_burst),
            operator_requests_per_s: rate(self.operator_requests_per_s, usual.operator_requests_per_s),
            operator_requests_burst: rate(self.operator_requests_burst, usual.operator_requests_burst),
            failures_per_minute: rate(self.failures_per_minute, usual.failures_per_minute),
            code: time(self.code_s, usual.code),
            codes: size(self.codes, usual.codes),
            grace: time(self.grace_s, usual.grace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every limit of the guide has its setting and its usual value there, and every setting is in the guide.
    #[test]
    fn the_guide_knows_every_setting_and_its_usual_value() {
        let guide = include_str!("../../../docs/server.md");
        let (platform, server) = (Config::default(), ServerLimits::default());
        let rows = [
            ("message-bytes", platform.message_bytes as u64),
            ("message-total-bytes", platform.message_total_bytes),
            ("message-open-s", u64::from(platform.message_open_s)),
            ("list-bytes", platform.list_bytes),
            ("message-blocks", platform.message_blocks),
            ("shown-blocks", platform.shown_blocks as u64),
            ("artifact-bytes", platform.artifact_bytes as u64),
            ("members", platform.members as u64),
            ("page", platform.page as u64),
            ("history-messages", platform.history_messages as u64),
            ("history-bytes", platform.history_bytes as u64),
            ("target-slots", u64::from(platform.target_slots)),
            ("json-bytes", server.json_bytes as u64),
            ("header-bytes", server.header_bytes as u64),
            ("headers", server.headers as u64),
            ("head-timeout-s", server.head_timeout.as_secs()),
            ("body-timeout-s", server.body_timeout.as_secs()),
            ("connections", server.connections as u64),
            ("uploads", server.uploads as u64),
            ("streams", server.streams as u64),
            ("streams-per-token", server.streams_per_token as u64),
            ("feeds", server.feeds as u64),
            ("heartbeat-s", server.heartbeat.as_secs()),
            ("requests-per-s", u64::from(server.requests_per_s)),
            ("requests-burst", u64::from(server.requests_burst)),
            ("operator-requests-per-s", u64::from(server.operator_requests_per_s)),
            ("operator-requests-burst", u64::from(server.operator_requests_burst)),
            ("failures-per-minute", u64::from(server.failures_per_minute)),
            ("code-s", server.code.as_secs()),
            ("codes", server.codes as u64),
            ("grace-s", server.grace.as_secs()),
        ];
        for (name, usual) in rows {
            assert!(guide.contains(&format!("| `{name}` | {usual} |")), "{name} {usual}");
        }
        let text: String = rows.iter().map(|(name, usual)| format!("{name} = {}\n", usual + 1)).collect();
        let set: Limits = toml::from_str(&text).expect("every name is a setting");
        let more = |duration: Duration| duration + Duration::from_secs(1);
        let changed = set.server(&server);
        assert_eq!((changed.heartbeat, changed.grace), (more(server.heartbeat), more(server.grace)));
        assert_eq!((changed.streams, changed.requests_per_s), (server.streams + 1, server.requests_per_s + 1));
        let changed = set.platform(platform.clone());
        assert_eq!(changed.artifact_bytes, platform.artifact_bytes + 1);
        assert_eq!(
            (changed.message_total_bytes, changed.message_open_s, changed.list_bytes),
            (platform.message_total_bytes + 1, platform.message_open_s + 1, platform.list_bytes + 1)
        );
        assert!(toml::from_str::<Limits>("feeds = 0").is_err());
        assert_eq!(
            (Limits::default().platform(platform.clone()), Limits::default().server(&server)),
            (platform, server)
        );
    }
}
