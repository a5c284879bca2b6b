//! Claims, receipts, admission (invariants 14 to 19, 21, 22).
//!
//! Invariant: the latest time of any event decides whether a claim is live, whatever a clock says. Called by the fold.

use std::collections::{BTreeMap, BTreeSet};

use aiws::json::Value;

use super::event::{Event, items, list, member, number, text};
use super::state::Rooms;
use crate::invariant::{Broken, Invariant};

#[derive(Clone, Debug)]
struct Claim {
    claimant: String,
    token: String,
    generation: u64,
    epoch: u64,
    expires_ms: u64,
}

#[derive(Clone, Debug)]
struct Delivery {
    stream: String,
    handoff: String,
    state: String,
    generation: u64,
    claim: Option<Claim>,
}

/// Deliveries with their claims, committed manifests, bound activations.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    deliveries: BTreeMap<String, Delivery>,
    /// The artifacts of a manifest: digest and size.
    manifests: BTreeMap<String, Vec<(String, String)>>,
    bound: BTreeSet<(String, String)>,
}

/// What a claim is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The latest time of any event, UTC milliseconds.
    pub max_ms: u64,
    /// The run's epoch before the event.
    pub epoch: u64,
}

impl Claims {
    /// Folds what an event does to deliveries and activations.
    pub fn fold(&mut self, event: &Event, now: Now, rooms: &mut Rooms<'_>) -> Result<(), Broken> {
        for (kind, it) in event.transitions()? {
            match kind {
                "MANIFEST_COMMITTED" => self.commit(event, it, rooms)?,
                "DELIVERY_OPENED" => self.open(event, member(it, "delivery")?)?,
                "DELIVERY_MOVED" => self.moved(event, it, now, rooms)?,
                "CONSUMPTION_RECORDED" => self.bind(event, member(it, "consumption")?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn commit(&mut self, event: &Event, it: &Value, rooms: &mut Rooms<'_>) -> Result<(), Broken> {
        let id = text(member(it, "handoff")?, "handoffId")?;
        let command = event.command()?;
        let manifest = match member(it, "skipped")? {
            Value::Null => Some(member(command, "manifest")?),
            _ => {
                let at = usize::try_from(number(it, "skipped")?).unwrap_or(usize::MAX);
                list(command, "skipped")?.get(at)
            }
        };
        let mut named = Vec::new();
        for artifact in manifest.map_or(&[][..], |manifest| items(manifest, "artifacts")) {
            let (digest, size) = (text(artifact, "digest")?, text(artifact, "sizeBytes")?);
            rooms.artifacts.named(digest, &event.named())?;
            named.push((digest.to_owned(), size.to_owned()));
        }
        self.manifests.insert(id.to_owned(), named);
        Ok(())
    }

    fn open(&mut self, event: &Event, delivery: &Value) -> Result<(), Broken> {
        let id = text(delivery, "deliveryId")?;
        let opened = Delivery {
            stream: event.stream.clone(),
            handoff: member(delivery, "handoff")?.to_string(),
            state: text(delivery, "state")?.to_owned(),
            generation: number(delivery, "generation")?,
            claim: None,
        };
        if self.deliveries.insert(id.to_owned(), opened).is_some() {
            let what = format!("{} opens delivery {id} again", event.named());
            return Err(Broken::new(Invariant::AdmittedOnce, what));
        }
        Ok(())
    }

    fn moved(
        &mut self,
        event: &Event,
        it: &Value,
        now: Now,
        rooms: &mut Rooms<'_>,
    ) -> Result<(), Broken> {
        let (id, to) = (text(it, "deliveryId")?, text(it, "to")?);
        let broken = |invariant, what: String| {
            let what = format!("{}: delivery {id} {what}", event.named());
            Err(Broken::new(invariant, what))
        };
        let Some(delivery) = self.deliveries.get(id) else {
            return broken(
                Invariant::NoForeignReceipt,
                "is not of this store".to_owned(),
            );
        };
        if delivery.stream != event.stream {
            return broken(Invariant::NoForeignReceipt, "is of another run".to_owned());
        }
        if delivery.state == "ACKNOWLEDGED" && to != "INVALIDATED" {
            let what = format!("has its receipt, and becomes {to}");
            return broken(Invariant::ReceiptStays, what);
        }
        let mut next = delivery.clone();
        match to {
            "CLAIMED" => {
                next.claim = Some(claimed(event, id, delivery, it, now, rooms)?);
                next.generation = next.claim.as_ref().map_or(0, |claim| claim.generation);
            }
            "ACKNOWLEDGED" => {
                holder(event, id, delivery, now)?;
                self.verified(event, id, delivery, it, rooms)?;
                rooms.marks.insert("received");
            }
            "PENDING" if event.kind == "releaseDelivery" => {
                holder(event, id, delivery, now)?;
                next.claim = None;
            }
            "PENDING" => next.claim = None,
            _ => {}
        }
        next.state = to.to_owned();
        self.deliveries.insert(id.to_owned(), next);
        Ok(())
    }

    /// A receipt rests on every artifact of its manifest, read back with its size.
    fn verified(
        &self,
        event: &Event,
        id: &str,
        delivery: &Delivery,
        it: &Value,
        rooms: &Rooms<'_>,
    ) -> Result<(), Broken> {
        let broken = |what: String| {
            let what = format!("{}: the receipt of delivery {id} {what}", event.named());
            Err(Broken::new(Invariant::ReceiptVerified, what))
        };
        let handoff = member(event.command()?, "handoff")?;
        if handoff.to_string() != delivery.handoff {
            return broken(format!(
                "is for {handoff}, delivered was {}",
                delivery.handoff
            ));
        }
        let materials = member(event.facts()?, "materials")?;
        let receipt = items(member(it, "acknowledgement")?, "materials");
        let artifacts = self.manifests.get(text(handoff, "handoffId")?);
        for (digest, size) in artifacts.into_iter().flatten() {
            let size_of = |found: Option<&Value>| {
                let found = found.and_then(|found| found.get("sizeBytes"));
                found.and_then(Value::as_str) == Some(size)
            };
            let listed = receipt
                .iter()
                .find(|it| it.get("digest").and_then(Value::as_str) == Some(digest));
            if !size_of(materials.get(digest)) || !size_of(listed) {
                return broken(format!(
                    "rests on {digest} of {size} bytes, which was not verified"
                ));
            }
            if rooms.artifacts.is_damaged(digest) {
                return broken(format!("rests on {digest}, whose bytes are damaged"));
            }
        }
        Ok(())
    }

    fn bind(&mut self, event: &Event, consumption: &Value) -> Result<(), Broken> {
        let activation = text(consumption, "activationId")?;
        for input in items(consumption, "inputs") {
            let id = text(input, "deliveryId")?;
            let mine = self
                .deliveries
                .get(id)
                .filter(|it| it.stream == event.stream);
            let invariant = match mine.map(|it| it.state.as_str()) {
                Some("ACKNOWLEDGED") => continue,
                Some(_) => Invariant::ReceiptStays,
                None => Invariant::NoForeignReceipt,
            };
            let what = format!(
                "{} takes delivery {id}, which has no receipt in its run",
                event.named()
            );
            return Err(Broken::new(invariant, what));
        }
        let place = (event.stream.clone(), activation.to_owned());
        if !self.bound.insert(place) {
            let what = format!("{} binds activation {activation} again", event.named());
            return Err(Broken::new(Invariant::AdmittedOnce, what));
        }
        Ok(())
    }
}

fn claimed(
    event: &Event,
    id: &str,
    delivery: &Delivery,
    it: &Value,
    now: Now,
    rooms: &mut Rooms<'_>,
) -> Result<Claim, Broken> {
    let claim = member(it, "claim")?;
    let claim = Claim {
        claimant: text(claim, "claimant")?.to_owned(),
        token: text(claim, "tokenHash")?.to_owned(),
        generation: number(claim, "generation")?,
        epoch: number(claim, "ownerEpoch")?,
        expires_ms: number(claim, "expiresAtMs")?,
    };
    if let Some(live) = delivery
        .claim
        .as_ref()
        .filter(|_| delivery.state == "CLAIMED")
    {
        if now.max_ms < live.expires_ms {
            let what = format!(
                "{} claims delivery {id} at {} ms, it is claimed until {} ms",
                event.named(),
                now.max_ms,
                live.expires_ms
            );
            return Err(Broken::new(Invariant::OneClaim, what));
        }
        rooms.marks.insert("reclaimed-after-expiry");
    }
    if claim.generation <= delivery.generation {
        let what = format!(
            "{} claims delivery {id} with generation {} after {}",
            event.named(),
            claim.generation,
            delivery.generation
        );
        return Err(Broken::new(Invariant::GenerationRises, what));
    }
    if claim.epoch != now.epoch {
        let what = format!(
            "{} claims delivery {id} under epoch {}, the run's is {}",
            event.named(),
            claim.epoch,
            now.epoch
        );
        return Err(Broken::new(Invariant::EpochCurrent, what));
    }
    if claim.generation > 1 {
        rooms.marks.insert("claimed-again");
    }
    Ok(claim)
}

/// Who acts on a claim holds it, and it is live.
fn holder(event: &Event, id: &str, delivery: &Delivery, now: Now) -> Result<(), Broken> {
    let command = event.command()?;
    let (token, generation) = (text(command, "claimToken")?, number(command, "generation")?);
    let claim = delivery.claim.as_ref();
    let held = claim.filter(|claim| {
        delivery.state == "CLAIMED"
            && claim.token == token
            && claim.generation == generation
            && claim.claimant == event.actor
            && claim.epoch == now.epoch
    });
    let Some(claim) = held else {
        let what = format!(
            "{} uses a claim of delivery {id} with generation {generation}, which is {} under generation {}",
            event.named(),
            delivery.state,
            delivery.generation
        );
        return Err(Broken::new(Invariant::HolderOnly, what));
    };
    if now.max_ms >= claim.expires_ms {
        let what = format!(
            "{} uses a claim of delivery {id} that expired at {} ms, the log has seen {} ms",
            event.named(),
            claim.expires_ms,
            now.max_ms
        );
        return Err(Broken::new(Invariant::ExpiredStays, what));
    }
    Ok(())
}
