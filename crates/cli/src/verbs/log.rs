//! `praxis log`: the events of the store, in log order.
//! Invariant: one line per event, nothing left out but what was asked to be.
//! Called by `office::look`.

use std::collections::BTreeMap;

use aiws::error::Error;
use aiws::id::{DeliveryId, NodeId};
use aiws::json::Value;
use praxis_journal_format::Sealed;
use praxis_model::command::Body;

use crate::answer::{Answer, View};
use crate::render::text::utc;
use crate::render::{escape, json};
use crate::store::Reader;

/// The events.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn answer(reader: &Reader, named: Option<&str>, view: View) -> Result<Answer, Error> {
    let only = named.map(|run| reader.find(Some(run))).transpose()?;
    let (mut lines, mut events) = (Vec::new(), Vec::new());
    let mut recipients = Recipients::new();
    let read = reader.journal.scan(1, |sequence, sealed| {
        let subject = &sealed.event.subject;
        remember(&mut recipients, &sealed);
        let wanted = only.as_ref().is_none_or(|only| only == subject);
        if wanted {
            match view.style {
                None => events.push(value(sequence, &sealed, &recipients)),
                Some(_) => lines.push(line(sequence, &sealed, &recipients)),
            }
        }
        true
    });
    read.map_err(|error| crate::store::of_store(&reader.path, &error))?;
    let value = json::object("log", aiws::object! { "events": events });
    Ok(Answer::done(value, view, |_| {
        lines.insert(
            0,
            format!(
                "{:>6}  {:<20}  {:<12}  {:<22}  {:<16}  what",
                "seq", "time", "run", "event", "by"
            ),
        );
        lines.join("\n")
    }))
}

/// Which node a delivery is for, from the event that made it.
type Recipients = BTreeMap<DeliveryId, NodeId>;

fn remember(recipients: &mut Recipients, sealed: &Sealed) {
    let (own, skipped) = match &sealed.event.command {
        Body::CommitBoundary(body) => (Some(&body.manifest), &body.skipped),
        Body::AdmitConsumer(body) => (None, &body.skipped),
        _ => return,
    };
    let all = own.into_iter().chain(skipped);
    let all = all.flat_map(|manifest| &manifest.recipients);
    recipients.extend(all.map(|to| (to.delivery_id.clone(), to.node_id.clone())));
}

fn line(sequence: u64, sealed: &Sealed, recipients: &Recipients) -> String {
    let event = &sealed.event;
    let run = event
        .subject
        .run_id
        .as_ref()
        .map_or("-", |run| run.as_str());
    let line = format!(
        "{sequence:>6}  {:<20}  {:<12}  {:<22}  {:<16}  {}",
        utc(event.at_ms.0),
        escape::line(run),
        event.kind.name(),
        escape::line(event.actor_id.as_str()),
        what(sealed, recipients)
    );
    line.trim_end().to_owned()
}

fn value(sequence: u64, sealed: &Sealed, recipients: &Recipients) -> Value {
    let event = &sealed.event;
    aiws::object! {
        "sequence": sequence.to_string(),
        "hash": sealed.hash.to_string(),
        "stream": &event.stream,
        "revision": event.revision,
        "missionId": &event.subject.mission_id,
        "runId": event.subject.run_id.as_ref().map(|run| run.as_str()),
        "type": event.kind.name(),
        "actorId": &event.actor_id,
        "actorKind": event.actor_kind,
        "decisionClass": event.decision_class.as_str(),
        "atMs": event.at_ms,
        "what": what(sealed, recipients),
    }
}

/// What the event is about, in a few words.
fn what(sealed: &Sealed, recipients: &Recipients) -> String {
    let event = &sealed.event;
    let short = |id: &str| crate::render::page::short(&escape::line(id));
    let delivery = |id: &DeliveryId| {
        let node = recipients.get(id).map_or("-", |node| node.as_str());
        format!("delivery {} for {}", short(id.as_str()), escape::line(node))
    };
    match &event.command {
        Body::ClaimDelivery(body) => delivery(&body.delivery_id),
        Body::AcknowledgeDelivery(body) => delivery(&body.delivery_id),
        Body::ReleaseDelivery(body) => delivery(&body.delivery_id),
        Body::CommitBoundary(body) => {
            let node = escape::line(body.manifest.producer.node_id.as_str());
            format!("{node} {}", body.manifest.outcome.status)
        }
        Body::AdmitConsumer(body) => escape::line(body.consumption.node_id.as_str()),
        Body::Dispatch(body) => format!(
            "{} attempt {}",
            escape::line(body.node_id.as_str()),
            short(body.attempt_id.as_str())
        ),
        Body::Settle(body) => format!(
            "attempt {} {}",
            short(body.attempt_id.as_str()),
            body.outcome
        ),
        Body::Reconcile(body) => {
            format!(
                "attempt {} {} ({})",
                short(body.attempt_id.as_str()),
                body.outcome,
                escape::line(&event.decision_class)
            )
        }
        Body::Retry(body) => format!("attempt {}", short(body.attempt_id.as_str())),
        Body::Approve(body) => format!("{} {}", body.decision, escape::line(&event.decision_class)),
        Body::Accept(body) => format!("{} {}", body.verdict, escape::line(&event.decision_class)),
        Body::Verify(body) => body.verdict.to_string(),
        Body::PlaceHold(body) => body.hold.reason.to_string(),
        Body::InvalidateHandoff(body) => {
            format!("handoff {}", short(body.handoff.handoff_id.as_str()))
        }
        Body::RecordSummary(body) => {
            let about = short(body.summary.handoff.handoff_id.as_str());
            format!("{} of handoff {about}", body.summary.author.kind)
        }
        Body::RecoverOwnership(body) => format!("from epoch {}", body.expected_epoch),
        Body::GrantCommand(body) => escape::clip(&escape::line(body.grant.grant_id.as_str()), 30),
        _ => String::new(),
    }
}
