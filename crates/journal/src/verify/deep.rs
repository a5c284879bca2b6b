//! Deep verification: every event is decided again from its recorded facts, on the state that its stream had before it.
//!
//! Invariant: an event counts as reached only where the model reached its outcome, the log bears out the facts that it
//! was decided on, and the stream's state takes it; what was not decided is counted apart. Called by verify.

use std::collections::BTreeMap;

use aiws::digest::Digest;
use aiws::id::StreamId;
use praxis_journal_format::Sealed;
use praxis_model::account::{AccountRow, Posting};
use praxis_model::command::CommandType;
use praxis_model::decision::Decision;
use praxis_model::event::{CODEC_VERSION, Event, Head};
use praxis_model::evolve;
use praxis_model::mission::{MissionState, cost_account};
use praxis_model::redecide::{self, Before, Fact, Verdict};
use praxis_model::run::RunState;
use praxis_model::stream::Subject;

use crate::ledger;
use crate::log::Log;
use crate::view::{View, post};

/// How deciding again went. All events of the log are counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeepReport {
    /// Events that were decided again and reached their recorded outcome.
    pub reached: u64,
    /// Events that were decided again and did not; each has a finding.
    pub differing: u64,
    /// Events that cannot be decided again, by command: the state or the gates before them are not known, because
    /// something before them is missing, damaged, of another version, or could not be folded.
    pub undecided: BTreeMap<CommandType, u64>,
    /// Events of other codec versions, by version: their rules are not this build's.
    pub other_versions: BTreeMap<u64, u64>,
    /// Events that could not be read; each has a finding.
    pub unreadable: u64,
}

impl DeepReport {
    /// How many events cannot be decided again.
    pub fn undecided_events(&self) -> u64 {
        self.undecided.values().sum()
    }
}

/// What is wrong with an event that was decided again.
pub(super) struct Trouble {
    /// The member of the event, as a JSON pointer; none where its place in the stream is wrong.
    pub member: Option<String>,
    /// What was decided and what is recorded.
    pub what: String,
}

/// A stream's state, or why there is none in memory.
enum Place {
    Mission(Box<MissionState>),
    Run {
        state: Box<RunState>,
        /// The sequence of the event that admitted it.
        admitted: u64,
    },
    /// A run that has ended; its state is folded anew should more events come.
    Ended {
        admitted: u64,
        last: u64,
    },
    /// Something of it is not known.
    Lost,
}

/// The walk's memory: the states of all missions and of the runs that have not ended.
pub(super) struct Deep<'a> {
    log: &'a Log,
    places: BTreeMap<StreamId, Place>,
    pub report: DeepReport,
}

impl<'a> Deep<'a> {
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            places: BTreeMap::new(),
            report: DeepReport::default(),
        }
    }

    /// An event that could not be read; `version` and `stream` are what its bytes say, where they say it.
    pub fn unread(&mut self, version: Option<u64>, stream: Option<&StreamId>) {
        match version.filter(|version| *version != CODEC_VERSION) {
            Some(version) => *self.report.other_versions.entry(version).or_default() += 1,
            None => self.report.unreadable += 1,
        }
        if let Some(stream) = stream {
            self.places.insert(stream.clone(), Place::Lost);
        }
    }

    /// Decides the event at a sequence again and folds it. `before` are the projections before it, where they are known.
    pub fn event(
        &mut self,
        sequence: u64,
        sealed: &Sealed,
        before: Option<&View>,
    ) -> Option<Trouble> {
        let event = &sealed.event;
        let Some(place) = self.place(event) else {
            self.undecided(event);
            self.places.insert(event.stream.clone(), Place::Lost);
            return None;
        };
        let decided = verdict(place.before(), event, before);
        let next = place.after(sequence, event, &sealed.hash);
        let decided = match (decided, &next) {
            (decided, Ok(_)) => decided,
            (Some(Err(mut trouble)), Err(_)) => {
                trouble.what.push_str("; its stream cannot be folded on");
                Some(Err(trouble))
            }
            (_, Err(what)) => Some(Err(Trouble {
                member: None,
                what: format!("it does not follow the state of its stream: {what}"),
            })),
        };
        if next.is_ok() {
            self.admit(sequence, event, &sealed.hash);
        }
        let next = next.unwrap_or(Place::Lost);
        self.places.insert(event.stream.clone(), next);
        self.count(event, decided)
    }

    fn count(&mut self, event: &Event, decided: Option<Result<(), Trouble>>) -> Option<Trouble> {
        match decided {
            None => self.undecided(event),
            Some(Ok(())) => self.report.reached += 1,
            Some(Err(trouble)) => {
                self.report.differing += 1;
                return Some(trouble);
            }
        }
        None
    }

    fn undecided(&mut self, event: &Event) {
        *self.report.undecided.entry(event.kind).or_default() += 1;
    }

    /// The stream's state, taken out; none where it is not known or is not where the event says.
    fn place(&mut self, event: &Event) -> Option<Taken> {
        let place = match self.places.remove(&event.stream) {
            None if event.kind == CommandType::OpenMission => return Some(Taken::Nothing),
            None | Some(Place::Lost) => return None,
            Some(Place::Mission(state)) => Taken::Mission(state),
            Some(Place::Run { state, admitted }) => Taken::Run { state, admitted },
            Some(Place::Ended { admitted, last }) => Taken::Run {
                state: Box::new(self.folded(admitted, last)?),
                admitted,
            },
        };
        let head = place.head();
        let follows = event.revision.get().checked_sub(1) == Some(head.revision.get());
        (follows && event.prev_hash == head.hash).then_some(place)
    }

    /// A run's state after the event at `last`, from its admission on; none where something of it cannot be read.
    fn folded(&self, admitted: u64, last: u64) -> Option<RunState> {
        let mut events = Vec::new();
        let mut sequence = last;
        while sequence != 0 {
            let bytes = self.log.frame(sequence).ok()??;
            let (sealed, hint) = ledger::sealed(sequence, &bytes).ok()?;
            sequence = Some(hint.previous).filter(|previous| *previous < sequence)?;
            events.push(sealed);
        }
        let admission = ledger::read(self.log, admitted).ok()??;
        let state = RunState::admitted(&admission.event, &admission.hash).ok()?;
        let fold = |state, sealed: Sealed| evolve::run(state, &sealed.event, &sealed.hash).ok();
        events.into_iter().rev().try_fold(state, fold)
    }

    /// The runs that the event admits begin.
    fn admit(&mut self, sequence: u64, event: &Event, hash: &Digest) {
        if event.kind != CommandType::StartRun {
            return;
        }
        let run = RunState::admitted(event, hash);
        for stream in &event.outcome.opens {
            let place = match &run {
                Ok(state) if state.stream == *stream => Place::Run {
                    state: Box::new(state.clone()),
                    admitted: sequence,
                },
                _ => Place::Lost,
            };
            self.places.insert(stream.clone(), place);
        }
    }
}

/// A state that was taken out to be folded.
enum Taken {
    Nothing,
    Mission(Box<MissionState>),
    Run { state: Box<RunState>, admitted: u64 },
}

impl Taken {
    fn head(&self) -> Head {
        match self {
            Self::Nothing => Head {
                revision: aiws::decimal::U64(0),
                hash: Digest::ZERO,
            },
            Self::Mission(state) => state.head,
            Self::Run { state, .. } => state.head,
        }
    }

    fn before(&self) -> Before<'_> {
        match self {
            Self::Nothing => Before::Mission(None),
            Self::Mission(state) => Before::Mission(Some(state)),
            Self::Run { state, .. } => Before::Run(state),
        }
    }

    /// The state after the event, by its recorded outcome.
    fn after(self, sequence: u64, event: &Event, hash: &Digest) -> Result<Place, String> {
        let mission = |state| {
            let next = evolve::mission(state, event, hash);
            next.map(|state| Place::Mission(Box::new(state)))
        };
        let next = match self {
            Self::Nothing => mission(None),
            Self::Mission(state) => mission(Some(*state)),
            Self::Run { state, admitted } => evolve::run(*state, event, hash).map(|state| {
                // An ended run has few events left, and a store has many ended runs.
                match state.lifecycle.is_terminal() {
                    true => Place::Ended {
                        admitted,
                        last: sequence,
                    },
                    false => Place::Run {
                        state: Box::new(state),
                        admitted,
                    },
                }
            }),
        };
        next.map_err(|illegal| illegal.to_string())
    }
}

/// What deciding again says: nothing where it cannot be decided, else whether the event is what follows.
fn verdict(before: Before<'_>, event: &Event, log: Option<&View>) -> Option<Result<(), Trouble>> {
    let mission = Subject::mission(event.subject.mission_id.clone());
    let gates = match log {
        Some(view) => view.gates(&mission),
        None if redecide::needs_log(event.kind) => return None,
        None => &[],
    };
    let trouble = |member: &str, what: String| Trouble {
        member: Some(member.to_owned()),
        what,
    };
    Some(match redecide::again(before, event, gates) {
        Verdict::Reached(decision) => {
            match log.map_or(Ok(()), |view| borne_out(view, event, &decision)) {
                Ok(()) => Ok(()),
                Err((member, what)) => Err(trouble(&member, what)),
            }
        }
        Verdict::Differs(found) => {
            let what = format!("decided {}, recorded {}", found.decided, found.recorded);
            Err(trouble(&found.member, what))
        }
        Verdict::Refused(refused) => Err(trouble(
            "/outcome",
            format!("decided a refusal with {refused}, recorded an outcome"),
        )),
    })
}

/// The log bears out what the event was decided on, and what the writer's conditions promised of it.
fn borne_out(view: &View, event: &Event, decision: &Decision) -> Result<(), (String, String)> {
    for read in &decision.same {
        let row = view.register(&read.register);
        let (revision, value) = row.map_or((0, None), |row| (row.revision, Some(&row.value)));
        let same = revision == read.revision.get()
            && value.map_or(read.value.is_null(), |value| *value == read.value);
        if !same {
            let at = event.facts.registers.iter().position(|known| known == read);
            let member = format!("/facts/registers/{}", at.unwrap_or_default());
            let key = read.register.key.as_str();
            let what = format!(
                "read {:?} {key} at revision {}, the log has another value at revision {revision}",
                read.register.kind, read.revision
            );
            return Err((member, what));
        }
    }
    account(view, event)?;
    reservations(view, event)
}

/// The account as read is not from the future, and where it has not moved since, it is the log's.
fn account(view: &View, event: &Event) -> Result<(), (String, String)> {
    let reads = redecide::row(event.kind).own.contains(&Fact::Account);
    let Some(read) = event.facts.account.as_ref().filter(|_| reads) else {
        return Ok(());
    };
    let mission = Subject::mission(event.subject.mission_id.clone());
    let row = view.account(&cost_account(&mission));
    let is_older = |row: &AccountRow| row.revision > read.revision;
    match row.is_some_and(|row| row == read || is_older(row)) {
        true => Ok(()),
        false => Err((
            "/facts/account".to_owned(),
            format!("read {read:?}, the log has {row:?}"),
        )),
    }
}

/// Every reservation fits its bound at its place in the log.
fn reservations(view: &View, event: &Event) -> Result<(), (String, String)> {
    let mut rows: BTreeMap<_, AccountRow> = BTreeMap::new();
    for (index, posting) in event.outcome.accounts.iter().enumerate() {
        let key = posting.account();
        let row = rows.get(key).or_else(|| view.account(key));
        // What cannot be posted is a finding of the projections.
        let Ok(row) = post(row, posting) else { break };
        let total = row.spent.checked_add(row.reserved);
        if matches!(posting, Posting::Reserve { .. }) && total.is_none_or(|total| total > row.bound)
        {
            let what = format!("reserves past the bound of its account: {row:?}");
            return Err((format!("/outcome/accounts/{index}"), what));
        }
        rows.insert(key, row);
    }
    Ok(())
}
