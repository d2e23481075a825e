//! The board on a platform in memory, with the agents of its folder. Time is paused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use expect_test::expect;
use loopd_inside::kit::{Agent, Script, Turn, World, survives};
use loopd_protocol::{ConversationId, Message};
use review_board::{Board, Decisions};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const BOARD: &str = "operator/review-board";

fn agents() -> [Agent; 2] {
    [
        Agent::from_manifest(include_str!("../agents/for.yaml"), include_str!("../agents/for.json")),
        Agent::from_manifest(include_str!("../agents/against.yaml"), include_str!("../agents/against.json")),
    ]
}

fn board(folder: &Path) -> Board {
    Board { rounds: 2, decide_s: 3600, decisions: Decisions::new(folder) }
}

/// All files of a folder; none where there is no folder.
fn files(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
    };
    let mut files: Vec<_> = entries.map(|entry| read(entry.unwrap())).collect();
    files.sort();
    files
}

struct Stage {
    world: World,
    room: ConversationId,
    folder: TempDir,
}

impl Stage {
    async fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        let world = World::new(agents).await;
        let room = world.room().await;
        Self { world, room, folder: tempfile::tempdir().unwrap() }
    }

    async fn propose(&self, text: &str) -> Message {
        self.world.say(self.room, BOARD, text).await
    }

    fn files(&self) -> Vec<(String, String)> {
        files(self.folder.path())
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_argued_decided_and_recorded_once_wherever_the_board_dies() {
    let folders = std::sync::Mutex::new(Vec::new());
    let make = async || {
        folders.lock().unwrap().push(tempfile::tempdir().unwrap());
        World::new(agents()).await
    };
    let last = || folders.lock().unwrap().last().unwrap().path().to_owned();
    let story = survives(
        make,
        BOARD,
        || board(&last()),
        async |world, room| {
            let said = world.say(room, BOARD, "Delete old backups by a program.").await;
            let question = world.question(room).await;
            assert_eq!(files(&last()), []);
            world.answer(&question, "accept").await;
            let answer = world.answer_of(&said).await;
            assert_eq!(answer, format!("Decided: **accept**. It is recorded in `{}.md`.", said.id));
        },
    )
    .await;
    expect![[r#"
        1 person/ann > operator/review-board [completed]
            text Delete old backups by a program.
        2 operator/review-board > person/ann [completed]
            ask > Delete old backups by a program.

        **for**

        > (demo) Data can be taken back as long as it is kept: we keep it for a year, and look again after three months.

        **against**

        > (demo) Then it is a trial and should be called one: a name, an end, and a person who looks at it.
        3 person/ann > operator/review-board [completed]
            reply Answered "accept"
        4 operator/review-board > person/ann [completed]
            markdown Decided: **accept**. It is recorded in `msg_0000000f424000000000000000000002.md`.
        at work
        1 harness/for > operator/review-board [completed]
            result (demo) It removes a step that everybody does by hand today. What it costs is known, and it can be taken back.
        2 harness/against > operator/review-board [completed]
            result (demo) The step by hand is also the only check. And what is deleted meanwhile cannot be taken back.
        3 harness/for > operator/review-board [completed]
            result (demo) Data can be taken back as long as it is kept: we keep it for a year, and look again after three months.
        4 harness/against > operator/review-board [completed]
            result (demo) Then it is a trial and should be called one: a name, an end, and a person who looks at it.
        call of for succeeded
        call of against succeeded
        call of for succeeded
        call of against succeeded
        for was asked 2 times
        against was asked 2 times
        operator/review-board has 0 conversations to look at
    "#]].assert_eq(&story.told);
    let all: Vec<_> = folders.lock().unwrap().iter().map(|folder| files(folder.path())).collect();
    assert_eq!(all.len(), 1 + 4 * story.requests.len());
    assert!(all.iter().all(|files| files.len() == 1 && files[0].0 == all[0][0].0));
    // The moment of the decision differs where the board was away for a while.
    let minutes = |page: &str| page.split_once("## Proposal").unwrap().1.to_owned();
    assert!(all.iter().all(|files| minutes(&files[0].1) == minutes(&all[0][0].1)));
    expect![[r#"
        # msg_0000000f424000000000000000000002: accept

        Decided by person/ann at 1002480 (milliseconds since 1970).

        ## Proposal

        > Delete old backups by a program.

        ## for, round 1

        > (demo) It removes a step that everybody does by hand today. What it costs is known, and it can be taken back.

        ## against, round 1

        > (demo) The step by hand is also the only check. And what is deleted meanwhile cannot be taken back.

        ## for, round 2

        > (demo) Data can be taken back as long as it is kept: we keep it for a year, and look again after three months.

        ## against, round 2

        > (demo) Then it is a trial and should be called one: a name, an end, and a person who looks at it.
    "#]]
    .assert_eq(&all[0][0].1);
}

#[tokio::test(start_paused = true)]
async fn each_side_is_asked_with_what_the_other_said() {
    let stage = Stage::new(agents()).await;
    let _running = stage.world.start(BOARD, board(stage.folder.path()));
    stage.propose("Delete old backups by a program.").await;
    stage.world.question(stage.room).await;
    let last = |agent: &str| stage.world.asked(agent).pop().unwrap();
    assert!(last("for").contains("> (demo) The step by hand is also the only check."), "{}", last("for"));
    assert!(last("against").contains("> (demo) Data can be taken back as long as it is kept"), "{}", last("against"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_recorded_where_nothing_was_decided() {
    for (number, why) in
        ["you did not want to decide", "the question was closed", "nobody decided in time"].into_iter().enumerate()
    {
        let stage = Stage::new(agents()).await;
        let _running = stage.world.start(BOARD, board(stage.folder.path()));
        let said = stage.propose("Paint it red.").await;
        let question = stage.world.question(stage.room).await;
        match number {
            0 => stage.world.decline(&question).await,
            1 => stage.world.dismiss(&question).await,
            _ => stage.world.pass(Duration::from_secs(3700)).await,
        }
        let answer = stage.world.answer_of(&said).await;
        assert_eq!(answer, format!("Nothing is decided: {why}. Nothing is recorded."));
        assert_eq!(stage.files(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_is_named_and_it_is_decided_without_it() {
    // No turn of this script fits.
    let broken = |name: &str| Agent::new(name, Script::empty().when("what nobody asks", Turn::says("?")));
    let [whole_for, whole_against] = agents();
    for (agents, calls, failed) in [
        ([broken("for"), whole_against], [1, 1], vec!["for"]),
        ([whole_for, broken("against")], [1, 1], vec!["against"]),
        ([broken("for"), broken("against")], [1, 1], vec!["for", "against"]),
    ] {
        let stage = Stage::new(agents).await;
        let _running = stage.world.start(BOARD, board(stage.folder.path()));
        let said = stage.propose("Paint it red.").await;
        let question = stage.world.question(stage.room).await;
        stage.world.answer(&question, "reject").await;
        assert!(stage.world.answer_of(&said).await.starts_with("Decided: **reject**."));
        let told = stage.world.told(stage.room).await;
        for side in ["for", "against"] {
            let named = told.matches(&format!("`{side}` could not argue: ")).count();
            assert_eq!(named, usize::from(failed.contains(&side)), "{told}");
        }
        assert_eq!([stage.world.asked("for").len(), stage.world.asked("against").len()], calls);
        assert!(stage.files()[0].1.contains("(failed)"));
    }
}

#[tokio::test(start_paused = true)]
async fn two_proposals_do_not_wait_for_each_other() {
    let stage = Stage::new(agents()).await;
    let _running = stage.world.start(BOARD, board(stage.folder.path()));
    let red = stage.propose("Paint it red.").await;
    let first = stage.world.question(stage.room).await;
    let blue = stage.propose("Paint it blue.").await;
    stage.world.pass(Duration::from_secs(60)).await;
    // The second is asked about while the first is open, and is decided before it.
    let asked = stage.world.questions(stage.room).await;
    assert_eq!((asked.len(), asked[0].id), (2, first.id));
    stage.world.answer(&asked[1], "reject").await;
    assert!(stage.world.answer_of(&blue).await.contains("**reject**"));
    assert_eq!(stage.world.answers_of(&red).await.len(), 0);
    stage.world.answer(&first, "accept").await;
    assert!(stage.world.answer_of(&red).await.contains("**accept**"));
    let pages = stage.files();
    assert_eq!(pages.len(), 2);
    assert!(pages.iter().any(|(_, page)| page.contains("red") && page.starts_with(&format!("# {}: accept", red.id))));
    assert!(pages.iter().any(|(_, page)| page.contains("blue") && page.contains(": reject\n")));
    assert_eq!([stage.world.asked("for").len(), stage.world.asked("against").len()], [4, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_cannot_be_written_is_said_once_and_tried_again() {
    let stage = Stage::new(agents()).await;
    let folder = stage.folder.path().join("decisions");
    std::fs::write(&folder, "in the way").unwrap();
    let _running = stage.world.start(BOARD, board(&folder));
    let said = stage.propose("Paint it red.").await;
    stage.world.answer(&stage.world.question(stage.room).await, "accept").await;
    stage.world.pass(Duration::from_secs(200)).await;
    let told = stage.world.told(stage.room).await;
    assert_eq!(told.matches("It cannot be recorded now").count(), 1, "{told}");
    assert_eq!(stage.world.answers_of(&said).await.len(), 0);
    std::fs::remove_file(&folder).unwrap();
    assert!(stage.world.answer_of(&said).await.contains("It is recorded"));
    assert_eq!(files(&folder).len(), 1);
}
