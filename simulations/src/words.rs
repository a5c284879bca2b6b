//! What a story says, in words that a person can read.
//!
//! Invariant: the same value gives the same words, and what is cut off (the rest of a digest) is never what tells two lines
//! apart in one run. Called by the simulation for its trace and its story.

use std::fmt::Debug;

use crate::oracle::Answer;

/// How much of a digest is kept.
const KEPT: usize = 8;

/// From how many digits on a name is a digest.
const DIGEST: usize = 32;

/// An answer.
pub(crate) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Stored { sequence, hash } => {
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("stored from sequence {sequence} on, head {}", &hash[..KEPT])
        }
        Answer::Replayed { sequence } => format!("stored before, at sequence {sequence}"),
        Answer::Refused { code } => format!("refused, {code}"),
        Answer::NotStored => "not stored, the disk failed".to_owned(),
        Answer::InDoubt => "in doubt until the store is opened again".to_owned(),
    }
}

/// Any value as its debug text, without quotes, the types of ids, braces, and the rest of digests.
pub(crate) fn plain(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut opened = Vec::new();
    for character in text.chars().chain(['\n']) {
        if character.is_ascii_alphanumeric() || character == '_' || character == '-' {
            word.push(character);
            continue;
        }
        let is_wrapped = character == '(' && !word.is_empty();
        // The type of an id, or a variant around one thing.
        let drops = is_wrapped && (word.ends_with("Id") || word == "Planned" || word == "Some");
        if !drops {
            push_word(&mut out, &word);
        }
        word.clear();
        match character {
            '"' | '\n' => {}
            '(' => {
                opened.push(drops);
                if !drops {
                    out.push('(');
                }
            }
            ')' => {
                if !opened.pop().unwrap_or(false) {
                    out.push(')');
                }
            }
            '{' => drop(
                out.pop()
                    .filter(|last| *last != ' ')
                    .map(|last| out.push(last)),
            ),
            '}' => out.truncate(out.trim_end().len()),
            other => out.push(other),
        }
    }
    out
}

fn push_word(out: &mut String, word: &str) {
    let is_digest = word.len() >= DIGEST && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_digest {
        true => out.push_str(&word[..KEPT]),
        // Names of members are written with lines below in the code, with spaces here.
        false => out.push_str(&word.replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[allow(dead_code)]
    struct NodeId(&'static str);

    #[derive(Debug)]
    #[allow(dead_code)]
    enum Planned {
        Dispatch {
            node_id: NodeId,
            attempt_id: Option<NodeId>,
        },
        Twice(u8, u8),
    }

    /// Ids lose their types, digests their rest, and what tells variants apart stays.
    #[test]
    fn a_value_is_told_in_words() {
        let digest = "2b07351cb48492d2c094f88ca823e4037e4924babd780c88f82eaa0edd50e126";
        let value = Planned::Dispatch {
            node_id: NodeId("first"),
            attempt_id: Some(NodeId(digest)),
        };
        assert_eq!(
            plain(&value),
            "Dispatch node id: first, attempt id: 2b07351c"
        );
        assert_eq!(plain(&Planned::Twice(1, 2)), "Twice(1, 2)");
    }

    /// Every answer says what became of the append.
    #[test]
    fn an_answer_is_told_in_words() {
        let stored = Answer::Stored {
            sequence: 7,
            hash: [0xab; 32],
        };
        assert_eq!(answer(&stored), "stored from sequence 7 on, head abababab");
        let refused = Answer::Refused {
            code: "HOLD_ACTIVE".to_owned(),
        };
        assert_eq!(answer(&refused), "refused, HOLD_ACTIVE");
    }
}
