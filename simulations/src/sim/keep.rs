//! Artifacts beside the hand-offs: puts, reads, collection, bits that change at rest.
//!
//! Invariant: what no event names is collected after its time, whatever is put meanwhile; what changed at rest is put
//! right again before the healed end. Part of the simulation.

use super::*;
use crate::disk::artifact_name;
use crate::plan::{Act, Keeping};
use praxis_artifacts::ArtifactProvider;

/// How long what nobody names is left to its commit, in milliseconds.
const RETENTION_MS: u64 = 5_000;

impl Sim {
    pub(super) fn keep(
        &mut self,
        process: &mut Process,
        does: Keeping,
        pick: u8,
    ) -> Result<Flow, Broken> {
        self.struck.insert(Fault::CrashInPut);
        match does {
            Keeping::Put => {
                let node = ["first", "second", "third"][usize::from(pick) % 3];
                let bytes = match pick % 4 {
                    0 => format!("nobody's {pick}").into_bytes(),
                    _ => cast::material(pick / 4, node),
                };
                if let Err(error) = self.put(process, "kept", &bytes) {
                    self.refused(&error);
                }
            }
            Keeping::Read => self.read(process, pick)?,
            Keeping::Collect => return self.collect(process, None),
            Keeping::CollectLate => return self.collect(process, Some(pick)),
            Keeping::Rot => self.rot(process, pick),
            Keeping::Mend => self.mend(),
        }
        Ok(Flow::Goes)
    }

    fn read(&mut self, process: &Process, pick: u8) -> Result<(), Broken> {
        let names = named(process);
        let Some(digest) = people::at(&names, pick) else {
            return Ok(());
        };
        let found = process.artifacts.read_digest(&digest, u64::MAX);
        if !self.disk.has_power() || self.was_struck() {
            return Ok(());
        }
        match found {
            Ok(bytes) => self.oracle.read(digest.0, Ok(&bytes)),
            Err(error) => self.oracle.read(digest.0, Err(error.code().name())),
        }
    }

    /// What no event names is collected after its time; if it is late, what was listed is put and named before that.
    fn collect(&mut self, process: &mut Process, late: Option<u8>) -> Result<Flow, Broken> {
        let concludes = late.and_then(|run| self.orphaned(process, run % self.cast.runs()));
        let known = named(process).into_iter().collect();
        let Ok(orphans) = process.artifacts.orphans(&known) else {
            return Ok(Flow::Goes);
        };
        if let Some(act) = concludes {
            let flow = self.step(process, &Step::Act(act))?;
            if flow != Flow::Goes || !self.disk.has_power() {
                return Ok(Flow::Dies);
            }
        }
        let now_ms = praxis_journal::Clock::now_ms(&*self.clock);
        for orphan in orphans {
            let collected = process.artifacts.collect(&orphan, RETENTION_MS, now_ms);
            if let Ok(true) = collected {
                self.oracle.collected(orphan.digest.0)?;
            }
        }
        Ok(Flow::Goes)
    }

    /// The bytes of a task that is done lie there unnamed for longer than they are kept; the act that names them.
    fn orphaned(&mut self, process: &Process, run: u8) -> Option<Act> {
        let act = self.picked(process, run, |choice| choice.concludes().is_some())?;
        let owner = process.owners.get(&run)?.last()?;
        let choices = self.choices(process, owner);
        let node = choices.get(usize::from(act.pick))?.concludes()?.clone();
        let bytes = cast::material(run, node.as_str());
        self.put(process, node.as_str(), &bytes).ok()?;
        self.clock.tick(RETENTION_MS + 1);
        Some(act)
    }

    /// A bit changes at rest in something that an event names, if possible where a receipt is still to be given for it.
    fn rot(&mut self, process: &Process, pick: u8) {
        let awaited = awaited(process);
        let among = match awaited.is_empty() {
            true => named(process),
            false => awaited,
        };
        let Some(digest) = people::at(&among, pick) else {
            return;
        };
        if self.rotten.iter().any(|(rotten, _)| *rotten == digest) {
            return;
        }
        let seed = u32::from(pick);
        self.trace.note(format_args!("a bit of {digest} changes"));
        self.disk.flip(&artifact_name(&digest), u64::from(seed));
        self.struck.insert(Fault::BitFlip);
        self.oracle.damaged_material(digest.0);
        self.rotten.push((digest, seed));
    }

    /// What changed at rest comes back from a backup.
    pub(super) fn mend(&mut self) {
        for (digest, seed) in std::mem::take(&mut self.rotten) {
            self.disk.flip(&artifact_name(&digest), u64::from(seed));
            self.oracle.mended_material(digest.0);
        }
    }
}

/// The artifacts of hand-offs that somebody still has to receive.
fn awaited(process: &Process) -> Vec<Digest> {
    let states = process.owners.values().filter_map(|all| all.last());
    let mut all = BTreeSet::new();
    for state in states.map(|owner| &owner.state) {
        let open = state.deliveries.values().filter(|it| {
            use aiws::record::DeliveryState::{Claimed, Pending};
            matches!(it.record.state, Pending | Claimed)
        });
        for delivery in open {
            let committed = state.manifests.get(&delivery.record.handoff.handoff_id);
            let artifacts = committed.iter().flat_map(|it| &it.manifest.artifacts);
            all.extend(artifacts.map(|artifact| artifact.digest));
        }
    }
    all.into_iter().collect()
}

/// The artifacts that events of the log name.
fn named(process: &Process) -> Vec<Digest> {
    let mut all = BTreeSet::new();
    for sealed in &process.log {
        if let Body::CommitBoundary(body) = &sealed.event.command {
            let artifacts = body.manifest.artifacts.iter();
            all.extend(artifacts.map(|artifact| artifact.digest));
        }
        let text = String::from_utf8_lossy(&sealed.bytes);
        let evidence = text.split("\"evidence-").skip(1);
        all.extend(evidence.filter_map(|rest| rest.get(..64)?.parse::<Digest>().ok()));
    }
    all.into_iter().collect()
}
