//! Which runs a store has, and which one a person means.
//! Invariant: runs stand in the order in which they were admitted; a name is never guessed.
//! Called by the reader of the store and by `resume`.

use aiws::error::{Code, Error};
use aiws::id::{MissionId, RunId};
use praxis_journal::{Journal, StoreError};
use praxis_journal_format::Sealed;
use praxis_model::command::Body;
use praxis_model::register::{RegisterKey, RegisterKind};
use praxis_model::stream::Subject;

use crate::coding::contract::Job;

/// The coding runs of a journal, oldest first.
///
/// # Errors
///
/// A store code when the log cannot be read.
pub fn runs_of(journal: &Journal) -> Result<Vec<Subject>, Error> {
    let view = journal.view();
    let mut runs: Vec<(u64, Subject)> = Vec::new();
    for (key, _) in view
        .registers()
        .filter(|(key, _)| key.kind == RegisterKind::RunAdmission)
    {
        if !is_coding(journal, &key.mission_id) {
            continue;
        }
        let subject = Subject::run(key.mission_id.clone(), RunId::from(key.key.clone()));
        runs.push((admitted_at(journal, &subject)?, subject));
    }
    runs.sort();
    Ok(runs.into_iter().map(|(_, subject)| subject).collect())
}

/// Whether a mission is a coding run's: a mission for workers has no job, and no verb shows its runs.
fn is_coding(journal: &Journal, mission: &MissionId) -> bool {
    let key = RegisterKey {
        mission_id: mission.clone(),
        kind: RegisterKind::Contract,
        key: mission.as_id(),
    };
    let view = journal.view();
    let contract = view
        .register(&key)
        .and_then(|row| aiws::canonical::from_value(row.value.get("contract")?).ok());
    contract.is_some_and(|contract| Job::named_in(&contract).is_some())
}

/// Whether a run was ever admitted.
pub(super) fn is_admitted(journal: &Journal, subject: &Subject) -> bool {
    let Some(run_id) = &subject.run_id else {
        return false;
    };
    let key = RegisterKey {
        mission_id: subject.mission_id.clone(),
        kind: RegisterKind::RunAdmission,
        key: run_id.as_id(),
    };
    journal.view().register(&key).is_some()
}

/// The admitting event's own place in the log: the order in which runs began. The head of the mission's stream is no
/// such thing, it moves on with the mission.
fn admitted_at(journal: &Journal, subject: &Subject) -> Result<u64, Error> {
    let failed = |error: StoreError| Error::new(error.code(), error.to_string());
    let stream = Subject::mission(subject.mission_id.clone()).stream();
    let events = journal.stream(&stream).map_err(failed)?;
    let Some(admitting) = events.iter().find(|sealed| admits(sealed, subject)) else {
        return Ok(0);
    };
    let found = journal.find_event(&stream, &admitting.hash);
    Ok(found.map_err(failed)?.unwrap_or_default())
}

pub(super) fn admits(sealed: &Sealed, subject: &Subject) -> bool {
    match &sealed.event.command {
        Body::StartRun(body) => Some(&body.run_id) == subject.run_id.as_ref(),
        _ => false,
    }
}

/// Whether a run has not ended.
#[must_use]
pub fn is_live(journal: &Journal, subject: &Subject) -> bool {
    let Some(run_id) = &subject.run_id else {
        return false;
    };
    let key = RegisterKey {
        mission_id: subject.mission_id.clone(),
        kind: RegisterKind::RunOutcome,
        key: run_id.as_id(),
    };
    journal.view().register(&key).is_none()
}

/// Missions of coding runs that were opened and whose run was not admitted: a kill came between.
#[must_use]
pub fn unstarted_missions(journal: &Journal) -> Vec<MissionId> {
    let view = journal.view();
    let of_kind = |kind: RegisterKind| view.registers().filter(move |(key, _)| key.kind == kind);
    let started = |mission: &MissionId| {
        of_kind(RegisterKind::RunAdmission).any(|(key, _)| key.mission_id == *mission)
    };
    of_kind(RegisterKind::Contract)
        .map(|(key, _)| key.mission_id.clone())
        .filter(|mission| !started(mission))
        .collect()
}

/// The run of this name or of an unambiguous beginning of it.
///
/// # Errors
///
/// `RUN_NOT_FOUND` or `RUN_AMBIGUOUS`, naming what there is.
pub fn pick(runs: &[Subject], named: &str) -> Result<Subject, Error> {
    if let Some(exact) = runs.iter().find(|subject| name(subject) == named) {
        return Ok(exact.clone());
    }
    let fitting: Vec<&Subject> = runs
        .iter()
        .filter(|subject| !named.is_empty() && name(subject).starts_with(named))
        .collect();
    let shown = crate::render::escape::line(named);
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        [] if runs.is_empty() => Err(none_yet()),
        [] => {
            let latest: Vec<String> = runs.iter().rev().take(5).map(name).collect();
            let message = format!(
                "expected a run of the store, found {shown}; the latest ones are {}",
                latest.join(", ")
            );
            Err(Error::new(Code::RunNotFound, message))
        }
        several => {
            let names: Vec<String> = several.iter().take(5).map(|run| name(run)).collect();
            let message = format!(
                "{shown} is the beginning of {} runs: {}",
                several.len(),
                names.join(", ")
            );
            Err(Error::new(Code::RunAmbiguous, message))
        }
    }
}

pub(super) fn name(run: &Subject) -> String {
    run.run_id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default()
}

pub(super) fn none_yet() -> Error {
    Error::new(
        Code::RunNotFound,
        "the store has no run yet; start one with praxis code",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> Subject {
        Subject::run(MissionId::new("m").unwrap(), RunId::new(name).unwrap())
    }

    #[test]
    fn a_run_is_found_by_an_unambiguous_beginning() {
        let runs = [run("r-abc"), run("r-abd"), run("r-ab")];
        assert_eq!(pick(&runs, "r-abc").unwrap(), run("r-abc"));
        assert_eq!(
            pick(&runs, "r-ab").unwrap(),
            run("r-ab"),
            "an exact name wins"
        );
        assert_eq!(pick(&runs, "r-a").unwrap_err().code(), Code::RunAmbiguous);
        assert_eq!(pick(&runs, "x").unwrap_err().code(), Code::RunNotFound);
        assert_eq!(pick(&runs, "").unwrap_err().code(), Code::RunNotFound);
        assert_eq!(pick(&[], "x").unwrap_err().code(), Code::RunNotFound);
    }
}
