//! Verification: every event from the first on, and every projection rebuilt from nothing and compared.
//!
//! Invariant: it trusts neither the index nor the view, names what and where is wrong, and changes nothing. The
//! owners' markers and the outbox cursors are not compared: the log does not determine them. Called by the journal.
//! Deep verification also decides every event again (see `deep`).

use aiws::error::Code;
use aiws::id::StreamId;
use praxis_journal_format::Sealed;
use praxis_journal_format::chain::Chain;
use praxis_journal_format::tree::TreeHead;
use praxis_model::command::CommandType;
use praxis_model::event::Head;
use praxis_model::stream::Subject;
use praxis_model::table::{Launch, launches};

use crate::append::RequestKey;
use crate::conditions::Lookup;
use crate::error::StoreError;
use crate::index::Snapshot;
use crate::ledger::{IndexCell, usable};
use crate::limits::VERIFY_FINDINGS;
use crate::log::Log;
use crate::rows::LogCursor;
use crate::tables::Table;
use crate::view::{Dirty, View, identities};

use against::Against;
use deep::Deep;
use frames::{Glimpse, Hints, glimpse, open};

mod against;
mod compare;
mod deep;
mod frames;

pub use against::{Compared, Standing};
pub use deep::DeepReport;

const NOT_THERE: &str = "the events are not in the log";

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// How many events were read.
    pub events: u64,
    /// Where the log ends.
    pub last: LogCursor,
    /// Where every stream ends.
    pub heads: Vec<(StreamId, Head)>,
    /// The sequence that the index covers; none if there is no index.
    pub index_sequence: Option<u64>,
    /// What is wrong, in the order of the log; the first [`VERIFY_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many more findings there were.
    pub more: u64,
    /// How deciding again went; none where it was not asked for.
    pub deep: Option<DeepReport>,
    /// How the log stands to each head that was kept outside, as they were given.
    pub compared: Vec<Compared>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The code of what it means for the store.
    pub code: Code,
    /// The log sequence; none for what is not about one event.
    pub sequence: Option<u64>,
    /// The stream, where it is known.
    pub stream: Option<StreamId>,
    /// The revision in the stream, where it is known.
    pub revision: Option<u64>,
    /// The command, where deciding it again found this.
    pub command: Option<CommandType>,
    /// The first member of the event that differs, as a JSON pointer, where deciding it again found this.
    pub member: Option<String>,
    /// What was expected and what was found.
    pub what: String,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, finding: Finding) {
        match self.findings.len() < VERIFY_FINDINGS {
            true => self.findings.push(finding),
            false => self.more += 1,
        }
    }

    fn whole(&mut self, code: Code, what: impl Into<String>) {
        self.add(Finding {
            code,
            sequence: None,
            stream: None,
            revision: None,
            command: None,
            member: None,
            what: what.into(),
        });
    }
}

/// How far a verification goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Events, chains and projections.
    Projections,
    /// Every event's decision, too.
    Decisions,
}

/// Reads the log up to the view's cursor and compares.
pub(crate) fn run(
    log: &Log,
    cell: &IndexCell,
    view: &View,
    depth: Depth,
    heads: &[TreeHead],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport, StoreError> {
    // One that the disk failed under cannot be read: the next append makes it anew.
    let index = usable(cell).filter(|index| !index.has_failed());
    let index = index.map(|index| index.snapshot()).transpose();
    let end = view.sequence();
    let mut walk = Walk::new(view, heads);
    walk.deep = (depth == Depth::Decisions).then(|| Deep::new(log));
    match index {
        Ok(index) => walk.begin(index),
        Err(error) => walk.report.whole(error.code(), error.to_string()),
    }
    let mut next = 1;
    while next <= end {
        let chunk = match log.chunk(next) {
            Ok(chunk) if !chunk.is_empty() => chunk,
            Ok(_) => break,
            Err(StoreError::Closed) => return Err(StoreError::Closed),
            Err(error) => {
                walk.missing(next, end, error.code(), &error.to_string());
                return Ok(walk.told());
            }
        };
        let before = next;
        for (sequence, bytes) in chunk
            .into_iter()
            .take_while(|(sequence, _)| *sequence <= end)
        {
            if sequence > next {
                walk.missing(next, sequence - 1, Code::TailLost, NOT_THERE);
            }
            walk.event(sequence, &bytes);
            next = sequence + 1;
        }
        if next == before {
            // What is there lies behind the end; the rest is missing.
            break;
        }
        progress(next - 1, end);
    }
    if next <= end {
        walk.missing(next, end, Code::TailLost, NOT_THERE);
    }
    Ok(walk.finish(view))
}

/// The state of one verification.
struct Walk<'a> {
    report: VerifyReport,
    chain: Chain,
    /// The projections so far; none once an event could not be folded.
    fold: Option<View>,
    dirty: Dirty,
    index: Option<Snapshot>,
    requests: u64,
    identities: u64,
    /// Deciding again, where it was asked for.
    deep: Option<Deep<'a>>,
    against: Against,
}

impl Walk<'_> {
    fn new(view: &View, heads: &[TreeHead]) -> Self {
        let report = VerifyReport {
            events: 0,
            last: LogCursor::START,
            heads: Vec::new(),
            index_sequence: None,
            findings: Vec::new(),
            more: 0,
            deep: None,
            compared: Vec::new(),
        };
        let mut walk = Self {
            report,
            chain: Chain::new(),
            fold: Some(View::default()),
            dirty: Dirty::default(),
            index: None,
            requests: 0,
            identities: 0,
            deep: None,
            against: Against::new(heads, view.sequence()),
        };
        // A store that was opened read-only for a reason says it first.
        if let Some(why) = view.damage() {
            walk.report.whole(why.code(), why.to_string());
        }
        walk
    }

    fn begin(&mut self, index: Option<Snapshot>) {
        let Some(index) = index else { return };
        match index.cursor() {
            Ok(cursor) => {
                self.report.index_sequence = Some(cursor.sequence);
                self.index = Some(index);
                if cursor.sequence == 0 {
                    self.compare_index();
                }
            }
            Err(error) => self.report.whole(error.code(), error.to_string()),
        }
    }

    fn event(&mut self, sequence: u64, bytes: &[u8]) {
        self.report.events += 1;
        let (frame, sealed) = match open(bytes) {
            Ok(opened) => opened,
            Err(cause) => {
                let Glimpse {
                    stream,
                    revision,
                    version,
                } = glimpse(bytes).unwrap_or_default();
                if let Some(deep) = &mut self.deep {
                    deep.unread(version, stream.as_ref());
                }
                let (code, what) = (cause.code(), cause.to_string());
                self.report.add(Finding {
                    code,
                    sequence: Some(sequence),
                    stream,
                    revision,
                    command: None,
                    member: None,
                    what,
                });
                self.chain.skip(sequence);
                self.against.skip();
                self.fold = None;
                return;
            }
        };
        if let Err(error) = self.chain.accept(sequence, &sealed) {
            self.at(
                sequence,
                &sealed,
                Code::ChainBroken,
                error.fault.to_string(),
            );
            self.chain.resume(sequence, &sealed);
        }
        self.report.last = LogCursor {
            sequence,
            hash: sealed.hash,
        };
        self.against.push(&sealed.hash);
        self.decide(sequence, &sealed);
        self.fold(sequence, &sealed, &frame);
        self.keys(sequence, &sealed);
        if self.report.index_sequence == Some(sequence) {
            self.compare_index();
        }
    }

    /// Decides the event again on the projections before it.
    fn decide(&mut self, sequence: u64, sealed: &Sealed) {
        let Some(deep) = &mut self.deep else { return };
        let Some(found) = deep.event(sequence, sealed, self.fold.as_ref()) else {
            return;
        };
        let event = &sealed.event;
        self.report.add(Finding {
            code: Code::StoreCorrupt,
            sequence: Some(sequence),
            stream: Some(event.stream.clone()),
            revision: Some(event.revision.0),
            command: Some(event.kind),
            member: found.member,
            what: found.what,
        });
    }

    /// Folds the event and checks what the writer's conditions promised about it.
    fn fold(&mut self, sequence: u64, sealed: &Sealed, frame: &Hints) {
        let Some(mut fold) = self.fold.take() else {
            return;
        };
        let event = &sealed.event;
        let previous = fold.head(&event.stream).map_or(0, |row| row.sequence);
        if frame.previous != previous {
            let what = format!(
                "expected its stream's previous event at {previous}, the frame says {}",
                frame.previous
            );
            self.at(sequence, sealed, Code::StoreCorrupt, what);
        }
        if launches(event.kind) == Launch::InRun {
            let owner = fold.owner(&event.subject.stream()).map(|row| row.epoch);
            if event.owner_epoch.map(|epoch| epoch.0) != owner {
                let what = format!(
                    "it launches work under epoch {:?}, the run's is {owner:?}",
                    event.owner_epoch
                );
                self.at(sequence, sealed, Code::StaleOwner, what);
            }
        }
        if launches(event.kind) != Launch::Nothing {
            let mission = Subject::mission(event.subject.mission_id.clone());
            let node = event.outcome.launched_in();
            let mut gates = fold
                .gates(&mission)
                .iter()
                .chain(fold.gates(&event.subject));
            if gates.any(|gate| gate.stops(node)) {
                self.at(
                    sequence,
                    sealed,
                    Code::HoldActive,
                    "it launches work behind a closed gate".to_owned(),
                );
            }
        }
        match fold.apply(sealed, frame.boot, &mut self.dirty) {
            Ok(()) => {
                // Requests and identities are checked row by row, so that memory stays small.
                fold.settle_all_keys();
                self.dirty = Dirty::default();
                self.fold = Some(fold);
            }
            Err(what) => {
                let what = format!("{what}; the projections after it were not compared");
                self.at(sequence, sealed, Code::StoreCorrupt, what);
            }
        }
    }

    fn keys(&mut self, sequence: u64, sealed: &Sealed) {
        let event = &sealed.event;
        let Some(index) = self.index.as_ref().filter(|_| {
            self.report
                .index_sequence
                .is_some_and(|end| sequence <= end)
        }) else {
            return;
        };
        let mut wrong = Vec::new();
        if let Some(key) = RequestKey::of(event).filter(|_| event.part.k.0 == 1) {
            self.requests += 1;
            match index.request_row(&key) {
                Err(error) => wrong.push(error.to_string()),
                Ok(Some(row)) if row.sequence == sequence && row.digest == event.request_digest => {
                }
                Ok(found) => wrong.push(format!(
                    "the index has {found:?} for request {}",
                    key.request_id
                )),
            }
        }
        for (key, row) in identities(event, sequence) {
            self.identities += 1;
            match index.identity(&key) {
                Err(error) => wrong.push(error.to_string()),
                Ok(Some(found)) if found == row => {}
                Ok(found) => wrong.push(format!(
                    "the index has {found:?} for {:?} {}",
                    key.kind, key.key
                )),
            }
        }
        wrong
            .into_iter()
            .for_each(|what| self.at(sequence, sealed, Code::StoreCorrupt, what));
    }

    fn compare_index(&mut self) {
        let (Some(fold), Some(index)) = (&self.fold, &self.index) else {
            return;
        };
        let compared = compare::index(fold, index);
        let counted = [
            (Table::Requests, self.requests),
            (Table::Identities, self.identities),
        ];
        let mut wrong = compared.unwrap_or_else(|error| vec![error.to_string()]);
        for (table, expected) in counted {
            match index.count(table) {
                Ok(found) if found == expected => {}
                Ok(found) => wrong.push(format!(
                    "index table {}: expected {expected} rows, found {found}",
                    table.name()
                )),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        wrong
            .into_iter()
            .for_each(|what| self.report.whole(Code::StoreCorrupt, what));
    }

    /// Events that are not there, or that the disk does not give: the code tells them apart.
    fn missing(&mut self, from: u64, to: u64, code: Code, what: &str) {
        let what = format!("expected events {from} to {to}: {what}");
        self.report.add(Finding {
            code,
            sequence: Some(from),
            stream: None,
            revision: None,
            command: None,
            member: None,
            what,
        });
        self.chain.skip(to);
        self.against.skip();
        self.fold = None;
    }

    fn at(&mut self, sequence: u64, sealed: &Sealed, code: Code, what: String) {
        let (stream, revision) = (
            Some(sealed.event.stream.clone()),
            Some(sealed.event.revision.0),
        );
        self.report.add(Finding {
            code,
            sequence: Some(sequence),
            stream,
            revision,
            command: None,
            member: None,
            what,
        });
    }

    fn finish(mut self, view: &View) -> VerifyReport {
        if self
            .report
            .index_sequence
            .is_some_and(|end| end > view.sequence())
        {
            self.report.whole(
                Code::TailLost,
                "the index covers more events than the log has",
            );
        }
        if let Err(error) = self.chain.ended() {
            self.report.whole(Code::TailLost, error.to_string());
        }
        if let Some(fold) = &self.fold {
            let wrong = compare::views(fold, view);
            wrong
                .into_iter()
                .for_each(|what| self.report.whole(Code::InternalStore, what));
        }
        self.report.heads = self
            .chain
            .heads()
            .map(|(stream, head)| (stream.clone(), *head))
            .collect();
        self.told()
    }

    /// The report, with what deciding again counted.
    fn told(mut self) -> VerifyReport {
        self.report.deep = self.deep.map(|deep| deep.report);
        for compared in self.against.compared() {
            if let Some((code, what)) = compared.finding(self.against.end()) {
                self.report.whole(code, what);
            }
            self.report.compared.push(compared);
        }
        self.report
    }
}
