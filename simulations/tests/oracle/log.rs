//! The log, its epochs and its requests: invariants 1 to 6, 9 to 13, 20, 23, 33 to 35.
//!
//! Invariant: see the histories' own. Part of the oracle's tests.

use aiws::object;
use praxis_simulations::oracle::{Answer, Handed};

use super::history::*;
use super::{accepts, breaks};

fn note() -> Draft {
    Draft::new(R1, "verify")
}

#[test]
fn sequences_have_no_gap() {
    accepts(|it| it.store(&note()));
    breaks(1, |it| {
        let handed = it.seal(&note());
        let (sequence, hash) = (it.log.len() as u64 + 2, handed.rows[0].hash);
        it.oracle.hand_in(&[handed]);
        it.oracle.answered(&[Answer::Stored { sequence, hash }])
    });
}

#[test]
fn events_link_to_their_streams_heads() {
    breaks(2, |it| {
        let heads = it.heads.clone();
        it.store(&note())?;
        it.heads = heads;
        it.store(&note().at(1_001))
    });
    breaks(2, |it| {
        let again = start(R1);
        it.store(&Draft {
            identities: Vec::new(),
            owner: None,
            ..again
        })
    });
}

#[test]
fn hashes_cover_everything() {
    breaks(3, |it| {
        let mut handed = it.seal(&note());
        handed.rows[0].hash = [9; 32];
        it.commit(&[handed])
    });
}

#[test]
fn the_answer_names_the_new_head() {
    breaks(4, |it| {
        let handed = it.seal(&note());
        let sequence = it.log.len() as u64 + 1;
        it.oracle.hand_in(&[handed]);
        it.oracle.answered(&[Answer::Stored {
            sequence,
            hash: [9; 32],
        }])
    });
}

#[test]
fn what_was_acknowledged_stays() {
    accepts(|it| it.reopen());
    breaks(5, |it| {
        it.log.pop();
        it.reopen()
    });
    breaks(5, |it| {
        let last = it.log.len() - 1;
        it.log.swap(last, last - 1);
        it.reopen()
    });
    breaks(3, |it| {
        it.log[2].bytes[10] ^= 1;
        it.reopen()
    });
}

#[test]
fn a_loss_by_damage_is_allowed_once_it_is_detected() {
    breaks(5, |it| {
        it.oracle.damaged();
        it.log.pop();
        it.reopen()
    });
    accepts(|it| {
        it.oracle.damaged();
        it.oracle.detected();
        it.log.truncate(3);
        it.reopen()?;
        assert!(it.oracle.seen().contains("damage-told"));
        it.reopen()
    });
}

#[test]
fn nothing_that_was_not_handed_in_appears() {
    breaks(6, |it| {
        let handed = it.seal(&note());
        it.log.extend(handed.rows);
        it.reopen()
    });
    breaks(6, |it| {
        let draft = note();
        let row = it.seal(&draft).rows.remove(0);
        it.heads.insert(stream(R1), (1, it.log[2].hash));
        it.oracle.hand_in(&[Handed {
            writer: 0,
            claims_epoch: None,
            request: None,
            rows: vec![row.clone()],
        }]);
        it.oracle.answered(&[Answer::NotStored])?;
        it.log.push(row);
        it.reopen()
    });
    breaks(6, |it| {
        let mut row = it.seal(&note()).rows.remove(0);
        row.bytes = b"{}".to_vec();
        row.hash = aiws::digest::tagged("aiws-event", &row.bytes).0;
        it.commit(&[Handed {
            writer: 0,
            claims_epoch: None,
            request: None,
            rows: vec![row],
        }])
    });
}

#[test]
fn what_is_in_doubt_is_there_whole_or_not_at_all() {
    accepts(|it| {
        let heads = it.heads.clone();
        let handed = it.seal(&note());
        it.oracle.hand_in(&[handed]);
        it.oracle.answered(&[Answer::InDoubt])?;
        it.reopen()?;
        it.heads = heads;
        assert!(it.oracle.seen().contains("in-doubt-was-not-stored"));
        let (first, second) = (it.seal(&note()), it.seal(&note().at(1_001)));
        it.oracle.hand_in(&[first.clone(), second.clone()]);
        it.log.extend(first.rows.into_iter().chain(second.rows));
        it.reopen()?;
        assert!(it.oracle.seen().contains("in-doubt-was-stored"));
        it.store(&note().at(1_002))
    });
    // Two events of one append are not torn.
    breaks(6, |it| {
        let (first, second) = (it.seal(&note()), it.seal(&note().at(1_001)));
        let rows: Vec<_> = first.rows.into_iter().chain(second.rows).collect();
        it.oracle.hand_in(&[Handed {
            writer: 0,
            claims_epoch: None,
            request: None,
            rows: rows.clone(),
        }]);
        it.log.push(rows[0].clone());
        it.reopen()
    });
}

#[test]
fn a_takeover_raises_the_epoch() {
    accepts(|it| {
        it.store(&take_over(R1, 2, 1))?;
        it.store(&Draft::new(R1, "settle").by(2, 2))
    });
    breaks(9, |it| {
        let mut draft = take_over(R1, 2, 1);
        draft.owner = Some(object! { "stream": stream(R1), "epoch": "1" });
        it.store(&draft)
    });
    breaks(9, |it| {
        let mut draft = take_over(R1, 2, 1);
        draft.owner = None;
        it.store(&draft)
    });
}

#[test]
fn a_new_owner_acts_behind_its_takeover() {
    breaks(10, |it| it.store(&Draft::new(R1, "settle").by(2, 2)));
    breaks(10, |it| {
        it.working("o", "a", "EXTERNAL")?;
        it.oracle.called(2, "a")
    });
    breaks(10, |it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.oracle.called(1, "a")
    });
    breaks(10, |it| it.oracle.called(1, "nothing"));
}

#[test]
fn no_event_is_below_the_current_epoch() {
    breaks(11, |it| {
        it.store(&take_over(R1, 2, 1))?;
        it.store(&Draft::new(R1, "settle"))
    });
    breaks(11, |it| {
        it.store(&admit("o", "a", 10, "EXTERNAL"))?;
        it.store(&moved("dispatch", "a", "PREPARED", "DISPATCHED"))?;
        it.store(&take_over(R1, 2, 1))?;
        it.oracle.called(1, "a")
    });
}

#[test]
fn a_run_has_one_writer_per_epoch() {
    accepts(|it| it.store(&Draft::new(R2, "settle").by(1, 1)));
    breaks(12, |it| it.store(&Draft::new(R1, "settle").by(2, 1)));
}

#[test]
fn the_epoch_is_checked_within_a_batch() {
    breaks(13, |it| {
        let taken = it.seal(&take_over(R1, 2, 1));
        let late = it.seal(&Draft::new(R1, "settle"));
        it.commit(&[taken, late])
    });
}

#[test]
fn a_duplicate_gets_the_first_answer() {
    accepts(|it| {
        it.store(&note().asked("q", "body"))?;
        let sequence = it.log.len() as u64;
        it.answered(&note().asked("q", "body"), Answer::Replayed { sequence })?;
        it.reopen()?;
        it.answered(&note().asked("q", "body"), Answer::Replayed { sequence })?;
        assert!(it.oracle.seen().contains("duplicate-after-reopening"));
        Ok(())
    });
    breaks(20, |it| {
        it.store(&note().asked("q", "body"))?;
        it.answered(&note().asked("q", "body"), Answer::Replayed { sequence: 2 })
    });
    breaks(20, |it| {
        it.answered(&note().asked("q", "body"), Answer::Replayed { sequence: 2 })
    });
}

fn conflict() -> Answer {
    Answer::Refused {
        code: "IDENTITY_CONFLICT".to_owned(),
    }
}

#[test]
fn a_refusal_leaves_no_name_behind() {
    accepts(|it| it.answered(&start(R1), conflict()));
    breaks(23, |it| {
        let mut draft = start(Some("r3"));
        draft.opens.clear();
        it.answered(&draft, conflict())
    });
}

#[test]
fn the_body_counts() {
    accepts(|it| {
        it.store(&note().asked("q", "body"))?;
        it.answered(&note().asked("q", "another"), conflict())
    });
    breaks(33, |it| {
        it.store(&note().asked("q", "body"))?;
        let sequence = it.log.len() as u64;
        it.answered(&note().asked("q", "another"), Answer::Replayed { sequence })
    });
    breaks(33, |it| {
        it.store(&note().asked("q", "body"))?;
        it.answered(&note().asked("q", "body"), conflict())
    });
}

#[test]
fn requests_are_known_for_life() {
    breaks(34, |it| {
        it.store(&note().asked("q", "body"))?;
        it.reopen()?;
        it.store(&note().asked("q", "body").at(1_001))
    });
    breaks(35, |it| {
        it.store(&note().asked("q", "body"))?;
        it.store(&note().asked("q", "body").at(1_001))
    });
}
