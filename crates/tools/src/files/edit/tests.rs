//! Somebody steps in between the moments of an edit.

use super::*;
use crate::files::tool::Stop;
use loopd_kernel::{Digest, EffectKey};
use std::fs;
use std::path::Path;

fn edit(folder: &Path, meanwhile: impl FnMut(Moment)) -> Result<Edited, ToolError> {
    let args = Args { path: "a.txt".into(), old: "one".into(), new: "two".into(), all: false };
    let attempt = Attempt { stop: Stop::never(), key: EffectKey(Digest::default()) };
    with(&Root::open(folder).unwrap(), args, &attempt, meanwhile)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_somebody_else_wrote_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    // In place, and by renaming: the two ways in which programs save.
    for save in [
        |file: &Path| fs::write(file, "theirs\n").unwrap(),
        |file: &Path| {
            fs::write(file.with_extension("new"), "theirs\n").unwrap();
            fs::rename(file.with_extension("new"), file).unwrap();
        },
    ] {
        fs::write(&file, "one\n").unwrap();
        let mut moments = Vec::new();
        let error = edit(dir.path(), |moment| {
            moments.push(moment);
            if moment == Moment::Compared {
                save(&file);
            }
        })
        .unwrap_err();
        assert_eq!(moments, [Moment::Compared, Moment::Displaced]);
        assert_eq!(error.failure.code, "file.changed");
        assert_eq!(error.disposition, loopd_kernel::failure::Disposition::DidNotHappen);
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n");
        assert_eq!(names(dir.path()), ["a.txt"]);
    }
}

#[test]
fn of_two_versions_of_somebody_else_both_stay() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    let error = edit(dir.path(), |moment| match moment {
        Moment::Compared => fs::write(&file, "first\n").unwrap(),
        Moment::Displaced => fs::write(&file, "second\n").unwrap(),
    })
    .unwrap_err();
    assert_eq!(error.failure.code, "file.conflict");
    assert_eq!(error.disposition, loopd_kernel::failure::Disposition::InDoubt);
    assert_eq!(fs::read_to_string(&file).unwrap(), "first\n");
    let names = names(dir.path());
    assert_eq!(names.len(), 2);
    assert!(error.failure.message.contains(&names[0]), "{error}");
    assert_eq!(fs::read_to_string(dir.path().join(&names[0])).unwrap(), "second\n");
}

#[test]
fn a_file_that_is_gone_meanwhile_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    let error = edit(dir.path(), |_| fs::remove_file(&file).unwrap()).unwrap_err();
    assert_eq!(error.failure.code, "file.changed");
    assert!(names(dir.path()).is_empty());
}
