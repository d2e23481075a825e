//! `examples/curl`: every script does what it says against a real server.

use crate::world::World;
use std::path::Path;
use std::process::Command;

/// What each script says at its end, or somewhere.
const SCRIPTS: [(&str, &[&str]); 6] = [
    (
        "1-sign-in.sh",
        &[r#"{"actor":"person/me","roles":["admin"]}"#, r#""key":"harness/demo""#, r#""code":"unauthenticated""#],
    ),
    (
        "2-say.sh",
        &["event: delta", "event: message_ended", r#""type":"result","text":"(demo model) You said: Good morning."#],
    ),
    (
        "3-question.sh",
        &[r#""status":"open""#, r#""code":"invalid""#, r#""value":"green""#, r#""type":"message_ended""#],
    ),
    ("4-call.sh", &["the same call", r#""code":"key_taken""#, r#""phase":"succeeded""#, r#""phase":"cancelled""#]),
    ("5-files.sh", &[r#""type":"artifact""#, "tea: 2\ncoffee: 3\n"]),
    ("6-resume.sh", &["nothing was missed, nothing came twice"]),
];

#[test]
fn every_script_does_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/curl");
    let mut there: Vec<_> = std::fs::read_dir(&folder)
        .expect("the scripts")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".sh") && name != "lib.sh")
        .collect();
    there.sort();
    assert_eq!(there, SCRIPTS.map(|(name, _)| name));
    let world = World::new();
    let _served = world.serve(&[]);
    for (name, says) in SCRIPTS {
        let mut script = Command::new("sh");
        script.arg(folder.join(name)).current_dir(world.path("")).env_clear().env("PATH", "/usr/bin:/bin");
        let output = script.output().expect("it starts");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}\n{out}\n{err}");
        for text in says {
            assert!(out.contains(text), "{name} does not say {text}\n{out}\n{err}");
        }
    }
}
