//! The rules that hold over many events: one gap-free sequence, one chain per stream, openings before first events.
//!
//! Invariant: an accepted event extends its stream by exactly one; the first that does not is named and refused.
//! Called by the journal's verification, by the reader of exports and by tests.

use std::collections::BTreeMap;
use std::fmt;

use aiws::decimal::U64;
use aiws::digest::Digest;
use aiws::id::{ActorId, MissionId, RequestId, StreamId};
use praxis_model::event::{Event, Head, Part};
use praxis_model::stream::Subject;

use crate::limits::MAX_STREAMS;
use crate::seal::Sealed;

/// The heads of all streams while a log is walked from its first event.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    heads: BTreeMap<StreamId, Head>,
    sequence: u64,
    /// The append that the last event left open; none after its last part and where that is not known.
    open: Option<OpenAppend>,
    /// The event before could not be read, so whether an append is open is not known.
    blind: bool,
}

/// An append of which parts are still to come (T-82).
#[derive(Clone, Debug)]
struct OpenAppend {
    /// The part that was last.
    part: Part,
    stream: StreamId,
    revision: u64,
    mission_id: MissionId,
    actor_id: ActorId,
    request_id: Option<RequestId>,
    request_digest: Digest,
}

/// An event that does not fit to the events before it: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainError {
    /// The log sequence of the event.
    pub sequence: u64,
    /// Its stream.
    pub stream: StreamId,
    /// Its revision.
    pub revision: u64,
    /// What is wrong.
    pub fault: ChainFault,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// The log's sequence has a gap or a repetition.
    Sequence {
        /// The next sequence.
        expected: u64,
    },
    /// The stream belongs neither to the event's subject nor to its mission.
    Stream,
    /// The stream's revision has a gap or a repetition.
    Revision {
        /// The next revision of the stream.
        expected: u64,
    },
    /// The previous hash is not the hash of the stream's last event, or of the event that opened it.
    PrevHash {
        /// The hash of what came before.
        expected: Digest,
        /// The hash that the event names.
        found: Digest,
    },
    /// A run's stream begins that no mission event opened.
    NotOpened,
    /// The event opens a stream that is already there.
    OpenedTwice {
        /// The stream.
        stream: StreamId,
    },
    /// The event is not the part of an append that has to stand here (T-82).
    Part {
        /// The part that has to, as k and N; none where an append begins.
        expected: Option<(u64, u64)>,
    },
    /// There are more streams than a reader keeps.
    TooMany,
}

impl Chain {
    /// Nothing walked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sequence of the last accepted event; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where every stream stands that has at least one event, in the order of the stream ids.
    pub fn heads(&self) -> impl Iterator<Item = (&StreamId, &Head)> {
        self.heads.iter().filter(|(_, head)| head.revision.0 > 0)
    }

    /// Where one stream stands; revision 0 if it is open and has no event.
    pub fn head(&self, stream: &StreamId) -> Option<&Head> {
        self.heads.get(stream)
    }

    /// Takes the next event of the log.
    ///
    /// # Errors
    /// The first rule that it breaks; the chain is then as before.
    pub fn accept(&mut self, sequence: u64, sealed: &Sealed) -> Result<(), Box<ChainError>> {
        let event = &sealed.event;
        self.check(sequence, sealed).map_err(|fault| {
            Box::new(ChainError {
                sequence,
                stream: event.stream.clone(),
                revision: event.revision.0,
                fault,
            })
        })?;
        self.resume(sequence, sealed);
        Ok(())
    }

    /// Takes an event whether or not it fits, after it was refused and reported: so that one wrong event is one
    /// finding, and not one for each event after it.
    pub fn resume(&mut self, sequence: u64, sealed: &Sealed) {
        for opened in &sealed.event.outcome.opens {
            let opening = Head {
                revision: U64(0),
                hash: sealed.hash,
            };
            self.heads.entry(opened.clone()).or_insert(opening);
        }
        self.heads
            .insert(sealed.event.stream.clone(), sealed.head());
        self.sequence = sequence;
        self.open = OpenAppend::after(&sealed.event);
        self.blind = false;
    }

    /// Goes past a sequence whose event cannot be read, after that was reported.
    pub fn skip(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.open = None;
        self.blind = true;
    }

    /// Goes past events of others, up to before a sequence, where only one mission's events are walked. Inside an append
    /// there are none, and none are passed.
    pub fn pass(&mut self, before: u64) {
        if self.open.is_none() {
            self.sequence = self.sequence.max(before.saturating_sub(1));
        }
    }

    /// Takes the end of the log.
    ///
    /// # Errors
    /// The last event is not the last part of its append: what became durable together with it is not there.
    pub fn ended(&self) -> Result<(), Box<ChainError>> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        Err(Box::new(ChainError {
            sequence: self.sequence + 1,
            stream: open.stream.clone(),
            revision: open.revision + 1,
            fault: ChainFault::Part {
                expected: Some(open.next()),
            },
        }))
    }

    fn check(&self, sequence: u64, sealed: &Sealed) -> Result<(), ChainFault> {
        let event = &sealed.event;
        if sequence != self.sequence + 1 {
            return Err(ChainFault::Sequence {
                expected: self.sequence + 1,
            });
        }
        if !belongs(&event.subject, &event.stream) {
            return Err(ChainFault::Stream);
        }
        let head = match self.heads.get(&event.stream) {
            Some(head) => *head,
            None if event.stream == Subject::mission(event.subject.mission_id.clone()).stream() => {
                Head {
                    revision: U64(0),
                    hash: Digest::ZERO,
                }
            }
            None => return Err(ChainFault::NotOpened),
        };
        if event.revision.0 != head.revision.0 + 1 {
            return Err(ChainFault::Revision {
                expected: head.revision.0 + 1,
            });
        }
        if event.prev_hash != head.hash {
            return Err(ChainFault::PrevHash {
                expected: head.hash,
                found: event.prev_hash,
            });
        }
        let mut fresh: Vec<&StreamId> = event.outcome.opens.iter().collect();
        fresh.sort();
        let repeated = fresh
            .windows(2)
            .find(|pair| pair[0] == pair[1])
            .map(|pair| pair[0]);
        let taken = fresh
            .into_iter()
            .find(|opened| **opened == event.stream || self.heads.contains_key(*opened));
        if let Some(stream) = repeated.or(taken) {
            return Err(ChainFault::OpenedTwice {
                stream: stream.clone(),
            });
        }
        if self.heads.len() + event.outcome.opens.len() >= MAX_STREAMS {
            return Err(ChainFault::TooMany);
        }
        self.part(event)
    }
}

impl Chain {
    /// The parts of an append stand one after the other, all of one request.
    fn part(&self, event: &Event) -> Result<(), ChainFault> {
        let fits = match &self.open {
            Some(open) => open.goes_on(event),
            None => self.blind || event.part.k == U64(1),
        };
        if fits {
            return Ok(());
        }
        Err(ChainFault::Part {
            expected: self.open.as_ref().map(OpenAppend::next),
        })
    }
}

impl OpenAppend {
    fn after(event: &Event) -> Option<Self> {
        (event.part.k < event.part.of).then(|| Self {
            part: event.part,
            stream: event.stream.clone(),
            revision: event.revision.0,
            mission_id: event.subject.mission_id.clone(),
            actor_id: event.actor_id.clone(),
            request_id: event.request_id.clone(),
            request_digest: event.request_digest,
        })
    }

    fn next(&self) -> (u64, u64) {
        (self.part.k.0 + 1, self.part.of.0)
    }

    fn goes_on(&self, event: &Event) -> bool {
        (event.part.k.0, event.part.of.0) == self.next()
            && event.subject.mission_id == self.mission_id
            && event.actor_id == self.actor_id
            && event.request_id == self.request_id
            && event.request_digest == self.request_digest
    }
}

/// Whether a stream is the subject's own, or its mission's (a store of one mission may keep all in that one, T-02).
pub fn belongs(subject: &Subject, stream: &StreamId) -> bool {
    *stream == subject.stream() || *stream == Subject::mission(subject.mission_id.clone()).stream()
}

impl fmt::Display for ChainError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sequence,
            stream,
            revision,
            fault,
        } = self;
        write!(
            out,
            "sequence {sequence}, stream {stream}, revision {revision}: {fault}"
        )
    }
}

impl std::error::Error for ChainError {}

impl fmt::Display for ChainFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence { expected } => write!(out, "expected sequence {expected}"),
            Self::Stream => {
                out.write_str("expected the stream of the event's subject or of its mission")
            }
            Self::Revision { expected } => write!(out, "expected revision {expected}"),
            Self::PrevHash { expected, found } => {
                write!(out, "expected previous hash {expected}, found {found}")
            }
            Self::NotOpened => out.write_str(
                "expected an earlier mission event that opens this run's stream, found none",
            ),
            Self::OpenedTwice { stream } => {
                write!(out, "expected new streams, but it opens {stream} again")
            }
            Self::Part {
                expected: Some((k, of)),
            } => write!(
                out,
                "expected part {k} of {of} of the request before, found something else"
            ),
            Self::Part { expected: None } => {
                out.write_str("expected part 1 of a request, found a later one")
            }
            Self::TooMany => write!(out, "expected at most {MAX_STREAMS} streams"),
        }
    }
}
