//! Whom the Router may ask now.

use crate::Config;
use loopd_protocol::Target;

/// The adapter of agents that play a script.
const DEMO: &str = "demo";

/// The names that a planner, and an agent for anything, usually have.
const PLANNER: &str = "planner";
const ASSISTANT: &str = "assistant";

/// The targets, as the Router sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whom it may give work to, by name.
    pub agents: Vec<Target>,
    /// Who plans and sums up.
    pub planner: String,
    /// Who answers where there is no plan to follow.
    pub usual: String,
    /// Why nothing can be asked.
    pub obstacle: Option<String>,
}

impl Seen {
    pub fn of(targets: &[Target], config: &Config) -> Self {
        let open: Vec<_> = targets.iter().filter(|target| target.unavailable.is_none()).collect();
        let has_real = open.iter().any(|target| target.adapter != DEMO);
        let may = |target: &&&Target| match &config.agents {
            Some(named) => named.contains(&target.name),
            None => !has_real || target.adapter != DEMO,
        };
        let mut agents: Vec<Target> = open.iter().filter(may).map(|target| (*target).clone()).collect();
        let planner = config.planner.as_deref().unwrap_or(PLANNER);
        let planner = open.iter().find(|target| target.name == planner).map(|target| target.name.clone());
        // Who is there for planning does nothing else, unless somebody says so or there is nobody else.
        if config.agents.is_none() && agents.len() > 1 {
            agents.retain(|agent| agent.name != PLANNER);
        }
        let named = |name: &str| agents.iter().find(|agent| agent.name == name).map(|agent| agent.name.clone());
        let first = || agents.first().map(|agent| agent.name.clone());
        let usual = named(ASSISTANT).or_else(first).unwrap_or_default();
        let planner = match &config.planner {
            Some(_) => planner,
            None => planner.or_else(|| Some(usual.clone()).filter(|usual| !usual.is_empty())),
        };
        let obstacle = match (&planner, &config.planner) {
            _ if agents.is_empty() => Some("there is no agent that I may ask and that takes calls".to_owned()),
            (None, Some(name)) => Some(format!("{name}, who plans, takes no calls now")),
            _ => None,
        };
        Self { agents, planner: planner.unwrap_or_default(), usual, obstacle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(targets: &[(&str, &str, bool)], config: &Config, expected: &str) {
        let target = |(name, adapter, open): &(&str, &str, bool)| -> Target {
            let mut target = json!({"name": name, "description": "", "adapter": adapter, "actor": format!("harness/{name}"),
                "slots": 1, "running": 0, "queued": 0});
            if !open {
                target["unavailable"] = json!("a key is missing");
            }
            serde_json::from_value(target).unwrap()
        };
        let seen = Seen::of(&targets.iter().map(target).collect::<Vec<_>>(), config);
        let names: Vec<_> = seen.agents.iter().map(|agent| agent.name.as_str()).collect();
        let said =
            seen.obstacle.unwrap_or_else(|| format!("{} plans, {} answers, of {names:?}", seen.planner, seen.usual));
        assert_eq!(said, expected);
    }

    #[test]
    fn whom_it_asks() {
        let usual = Config::default();
        let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let real = [("assistant", "loop", true), ("demo", "demo", true), ("finder", "loop", true)];
        check(&real, &usual, r#"assistant plans, assistant answers, of ["assistant", "finder"]"#);
        check(&[("demo", "demo", true)], &usual, r#"demo plans, demo answers, of ["demo"]"#);
        check(&[("a", "loop", true), ("planner", "loop", true)], &usual, r#"planner plans, a answers, of ["a"]"#);
        check(&[("a", "loop", false), ("demo", "demo", true)], &usual, r#"demo plans, demo answers, of ["demo"]"#);
        let named =
            Config { planner: Some("finder".into()), agents: some(&["demo", "assistant"]), ..Config::default() };
        check(&real, &named, r#"finder plans, assistant answers, of ["assistant", "demo"]"#);
        check(&real[..2], &named, "finder, who plans, takes no calls now");
        check(&[("a", "loop", false)], &usual, "there is no agent that I may ask and that takes calls");
    }
}
