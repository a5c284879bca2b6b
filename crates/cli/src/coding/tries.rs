//! Why the tries of an operation came to nothing, counted from their evidence.
//! Invariant: a try counts as a start of its command unless its evidence shows that there was none.
//! Called by `program` before a further try and when there is none.

use aiws::json::Value;
use praxis_engine::EffectOutcome;
use praxis_engine::program::NodeContext;

use super::outcome::{Ended, Outcome};

/// The tries of one operation that were not applied, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// The command said that it did nothing: exit 75.
    refused: usize,
    /// A person found out that it did nothing.
    found: usize,
    /// The command could not be started, its tree not be built.
    not_started: usize,
    /// It was given back before it was dispatched, or was a check that was lost with the engine.
    lost: usize,
}

impl Tries {
    /// The tries of the node's operation so far.
    pub(super) fn of(ctx: &NodeContext) -> Self {
        let mut tries = Self::default();
        let attempts = ctx
            .operation
            .iter()
            .flat_map(|operation| &operation.attempts);
        for attempt in attempts.filter_map(|id| ctx.state.attempts.get(id)) {
            let mine = ctx
                .evidence
                .iter()
                .filter(|record| record.attempt_id == attempt.attempt_id);
            let report = mine.filter_map(|record| record.report.as_ref()).next_back();
            let nothing = report.filter(|report| report.outcome == EffectOutcome::NotApplied);
            let count = match nothing.map(|report| &report.evidence) {
                // A rule or the ledger itself settled it, not somebody who brings evidence.
                None if attempt.evidence.is_empty() => &mut tries.lost,
                None => &mut tries.found,
                Some(evidence) => {
                    match Outcome::from_value(evidence).map(|outcome| outcome.ended) {
                        Some(Ended::NotStarted) => &mut tries.not_started,
                        None if evidence.get("called") == Some(&Value::Bool(false)) => {
                            &mut tries.not_started
                        }
                        _ => &mut tries.refused,
                    }
                }
            };
            *count += 1;
        }
        tries
    }

    /// How often the command was started, as far as anybody can say.
    pub(super) fn starts(self) -> usize {
        self.refused + self.found
    }

    /// What became of them, in a sentence without a full stop.
    pub(super) fn sentence(self) -> String {
        let counts = [
            (self.refused, "said that it did nothing (exit 75)"),
            (self.found, "was found to have done nothing"),
            (self.not_started, "could not be started"),
            (self.lost, "was lost with the engine"),
        ];
        let said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| match count {
                1 => format!("once it {what}"),
                count => format!("{count} times it {what}"),
            })
            .collect();
        let all = counts.iter().map(|(count, _)| count).sum::<usize>();
        format!("no try is left after {all}: {}", said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_each_cause_and_only_starts_count_as_such() {
        let tries = Tries {
            refused: 2,
            found: 1,
            not_started: 4,
            lost: 0,
        };
        assert_eq!(tries.starts(), 3);
        assert_eq!(
            tries.sentence(),
            "no try is left after 7: 2 times it said that it did nothing (exit 75), once it was found to have done \
             nothing, 4 times it could not be started"
        );
    }
}
