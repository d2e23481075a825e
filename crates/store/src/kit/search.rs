//! What words find.

use super::shelf::{ASIDE, ELSEWHERE, SCOPE, TABLE, id, names, put, record, search, write};
use super::world::writes;
use super::{Outcome, Subject, Verdict, same};
use crate::batch::Write;
use crate::records::{Place, Query, Record, WORD_CHARS};
use std::sync::Arc;

fn text(n: u8, text: &str) -> Record {
    Record { words: Some(text.to_owned()), ..record(n) }
}

pub(super) async fn words_find_records(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let aside = Record { scope: ASIDE, ..text(4, "the third cat") };
    store
        .commit(writes([
            put(text(1, "The cat sat on the mat, twice: on the mat."), Place::At(10)),
            put(text(2, "A dog; no CAT!"), Place::At(30)),
            put(text(3, "Größe ΟΔΟΣ 12kg don't"), Place::At(20)),
            put(aside, Place::At(30)),
            put(Record { table: ELSEWHERE, ..text(5, "cat") }, Place::At(1)),
            put(record(6), Place::At(1)),
            put(text(7, &"y".repeat(WORD_CHARS + 9)), Place::At(2)),
        ]))
        .await?;
    let both = [SCOPE, ASIDE, SCOPE];
    let long = "Y".repeat(WORD_CHARS + 1);
    let table: [(&[_], &str, &[u8]); 16] = [
        // The greatest place first, and at one place the greatest identity.
        (&both, "cat", &[4, 2, 1]),
        (&both, "cat the", &[4, 1]),
        (&both, "  MAT,cat. cat", &[1]),
        (&both, "cat größe", &[]),
        (&[ASIDE], "cat", &[4]),
        (&[SCOPE], "Cat", &[2, 1]),
        (&[], "cat", &[]),
        (&[id(99)], "cat", &[]),
        // Whole words, and letters as they are.
        (&both, "ca", &[]),
        (&both, "cats", &[]),
        (&both, "GRÖSSE", &[]),
        (&both, "grösse", &[]),
        (&both, "GRÖßE οδος", &[3]),
        (&both, "t don 12KG", &[3]),
        (&both, "grosse", &[]),
        (&both, &long, &[7]),
    ];
    for (scopes, words, expected) in table {
        same(&format!("what {words:?} finds"), &search(&store, scopes, words).await?, &expected.to_vec())?;
    }
    let few = Query::Search { table: TABLE, scopes: both.to_vec(), text: "cat".to_owned(), limit: 2 };
    same("the first two", &names(&store.records(few).await?), &vec![4, 2])?;

    // Words are those of the last write.
    store.commit(writes([put(text(1, "a bird"), Place::Keep), put(record(2), Place::Keep)])).await?;
    same("what the old words find", &search(&store, &both, "cat").await?, &vec![4])?;
    same("what the new words find", &search(&store, &both, "bird").await?, &vec![1])?;
    store.commit(writes([put(text(1, "a bird"), Place::Keep), put(text(2, "bird"), Place::At(9))])).await?;
    same("what words find once they are back", &search(&store, &both, "bird").await?, &vec![1, 2])?;
    store.commit(writes([Write::DeleteRecord(TABLE, id(1)), Write::DeleteScope(TABLE, ASIDE)])).await?;
    same("what the words of removed records find", &search(&store, &both, "a").await?, &Vec::new())?;
    same("what the words of a removed scope find", &search(&store, &both, "third").await?, &Vec::new())?;
    same("what is left", &search(&store, &both, "bird").await?, &vec![2])?;
    Ok(Verdict::Passed)
}

pub(super) async fn no_sign_is_an_operator(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let texts = ["a cat or a dog near here", "a cat", "words: not and or near", "quote \" star * (round)"];
    for (n, words) in (1..).zip(texts) {
        write(&store, put(text(n, words), Place::Next)).await?;
    }
    let table: [(&str, &[u8]); 20] = [
        ("\"", &[]),
        ("\"\"", &[]),
        ("*", &[]),
        ("", &[]),
        ("\0", &[]),
        ("' OR 1=1 --", &[]),
        ("\"cat", &[2, 1]),
        ("ca*", &[]),
        ("^cat", &[2, 1]),
        ("-cat", &[2, 1]),
        ("cat OR quote", &[]),
        ("cat OR dog", &[1]),
        ("cat NOT dog", &[]),
        ("dog AND cat", &[]),
        ("NEAR(cat dog)", &[1]),
        ("NEAR(", &[3, 1]),
        ("words:cat", &[]),
        ("{words} : not", &[3]),
        ("(((\"*:^+-", &[]),
        ("round) UNION SELECT", &[]),
    ];
    for (words, expected) in table {
        same(&format!("what {words:?} finds"), &search(&store, &[SCOPE], words).await?, &expected.to_vec())?;
    }
    Ok(Verdict::Passed)
}
