//! The wire: bytes of a request become a command with its digest, or a refusal with the place.
//!
//! Invariant: strict JSON first, then the protocol string, then the closed shape (T-38), and the raw token leaves
//! the material before anything is hashed or kept (HD-02.10, T-23). Called by the engine for every request.

use aiws::canonical::{from_value, from_value_at};
use aiws::decimal::Dec;
use aiws::digest::{Digest, sha256};
use aiws::error::Error;
use aiws::id::{MissionId, RequestId, RunId};
use aiws::json::{Object, Value};
use aiws::record::{Contract, Manifest, Record, fields};
use aiws::token::ClaimToken;
use serde::Deserialize;

use crate::command::{Body, Command, CommandType, Intent};
use crate::table::{Family, StreamKind, row};

/// A request of a caller who states revision and epoch itself.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request's id; unique per principal and mission (HF-02.1).
    pub request_id: RequestId,
    /// What is asked; tokens are fingerprints.
    pub command: Command,
    /// The raw token that was presented, if any. It has no printable form.
    pub token: Option<ClaimToken>,
    /// SHA-256 of the canonical request with the token replaced by its fingerprint (T-23).
    pub digest: Digest,
}

/// A request of a worker or the scheduler, who leaves revision, epoch and basis to the owner.
#[derive(Clone, Debug)]
pub struct IntentRequest {
    /// The request's id.
    pub request_id: RequestId,
    /// The mission.
    pub mission_id: MissionId,
    /// The run.
    pub run_id: RunId,
    /// What is asked; tokens are fingerprints.
    pub intent: Intent,
    /// The raw token that was presented, if any.
    pub token: Option<ClaimToken>,
    /// SHA-256 of the canonical request with the token replaced by its fingerprint; the owner's members are no
    /// part of it (T-23).
    pub digest: Digest,
}

/// Reads `{requestId, expectedRevision, ownerEpoch, command, missionId?}`. The command is an envelope of the
/// hand-off protocol, or a bare command with its `type`; then `missionId` says whose it is. Values that stand in
/// both layers must agree.
///
/// # Errors
/// SCHEMA_INVALID for what is not strict JSON, then UNSUPPORTED_PROTOCOL, then SCHEMA_INVALID for the shape, each
/// with a pointer.
pub fn parse(bytes: &[u8]) -> Result<Request, Error> {
    let mut value = aiws::strict::parse(bytes)?;
    supported(&value, ["", "/command", "/command/body"])?;
    let sent = value
        .get("command")
        .and_then(|command| command.get("body"))
        .is_some();
    let token = fingerprinted(
        &mut value,
        if sent {
            &["command", "body"]
        } else {
            &["command"]
        },
    )?;
    let digest = sha256(&aiws::canonical::to_bytes(&value));
    let outer: Outer = from_value(&value)?;
    let request_id = outer.request_id.clone();
    let command = if outer.command.get("protocol").is_some() || sent {
        enveloped(outer, digest)?
    } else {
        bare(outer, digest)?
    };
    Ok(Request {
        request_id,
        command,
        token,
        digest,
    })
}

/// Reads `{requestId, missionId, runId, intent}`; the intent's member `intent` names its kind.
///
/// # Errors
/// As `parse`.
pub fn intent(bytes: &[u8]) -> Result<IntentRequest, Error> {
    let mut value = aiws::strict::parse(bytes)?;
    supported(&value, ["", "/intent", "/intent/body"])?;
    let token = fingerprinted(&mut value, &["intent", "body"])?;
    let digest = sha256(&aiws::canonical::to_bytes(&value));
    let sent: SentIntent = from_value(&value)?;
    let command = sent.intent.get("intent").and_then(Value::as_str) == Some("command");
    let intent = match sent.intent.get("body").filter(|_| command) {
        // Read member by member, so that the pointer of a refusal leads to the place.
        Some(body)
            if sent
                .intent
                .as_object()
                .is_some_and(|members| members.len() == 2) =>
        {
            Intent::Command {
                body: body_at(body, "/intent/body", None)?,
            }
        }
        _ => from_value_at(&sent.intent, "/intent")?,
    };
    let SentIntent {
        request_id,
        mission_id,
        run_id,
        ..
    } = sent;
    Ok(IntentRequest {
        request_id,
        mission_id,
        run_id,
        intent,
        token,
        digest,
    })
}

/// The outer layer of a request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Outer {
    request_id: RequestId,
    #[serde(deserialize_with = "fields::nullable")]
    expected_revision: Option<Dec>,
    #[serde(deserialize_with = "fields::nullable")]
    owner_epoch: Option<Dec>,
    command: Value,
    #[serde(default, deserialize_with = "fields::optional")]
    mission_id: Option<MissionId>,
}

/// The envelope of the hand-off protocol: exactly seven members (HC-ENV.1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Envelope {
    #[serde(rename = "protocol")]
    _protocol: aiws::record::Protocol,
    request_id: RequestId,
    expected_revision: Dec,
    mission_id: MissionId,
    run_id: RunId,
    owner_epoch: Dec,
    body: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SentIntent {
    request_id: RequestId,
    mission_id: MissionId,
    run_id: RunId,
    intent: Value,
}

/// Another protocol is named as such, whatever else it brings (T-38, HM-01.3): first every protocol string in its
/// layer or manifest, then what a contract asks for. Only the shape knows which layer may have which member.
fn supported(value: &Value, layers: [&'static str; 3]) -> Result<(), Error> {
    let layers = || {
        let found = |place: &'static str| value.pointer(place).map(|layer| (place, layer));
        layers.into_iter().filter_map(found)
    };
    for (place, layer) in layers() {
        protocol(layer, place)?;
    }
    for (place, layer) in layers() {
        if let Some(manifest) = layer.get("manifest") {
            protocol(manifest, &format!("{place}/manifest"))?;
        }
        let skipped = layer.get("skipped").and_then(Value::as_array);
        for (index, manifest) in skipped.unwrap_or_default().iter().enumerate() {
            protocol(manifest, &format!("{place}/skipped/{index}"))?;
        }
    }
    for (place, layer) in layers() {
        if let Some(contract) = layer.get("contract") {
            let place = format!("{place}/contract");
            Contract::supported(contract).map_err(|error| error.under(&place))?;
        }
    }
    Ok(())
}

/// The member `protocol` of an envelope, a manifest, or whatever stands where one belongs.
fn protocol(value: &Value, place: &str) -> Result<(), Error> {
    Manifest::supported(value).map_err(|error| error.under(place))
}

/// Takes the raw token out and puts its fingerprint in its place.
fn fingerprinted(value: &mut Value, path: &[&str]) -> Result<Option<ClaimToken>, Error> {
    let mut place = value;
    for name in path {
        let Value::Object(members) = place else {
            return Ok(None);
        };
        let Some(next) = members.get_mut(*name) else {
            return Ok(None);
        };
        place = next;
    }
    let Value::Object(members) = place else {
        return Ok(None);
    };
    let Some(Value::String(text)) = members.get("claimToken") else {
        return Ok(None);
    };
    let pointer = format!("/{}/claimToken", path.join("/"));
    let token = ClaimToken::parse(text).map_err(|error| error.at(pointer))?;
    members.insert(
        "claimToken".to_owned(),
        token.fingerprint().to_string().into(),
    );
    Ok(Some(token))
}

fn enveloped(outer: Outer, digest: Digest) -> Result<Command, Error> {
    let envelope: Envelope = from_value_at(&outer.command, "/command")?;
    agree(
        "/command/requestId",
        &outer.request_id,
        &envelope.request_id,
    )?;
    agree(
        "/command/expectedRevision",
        &outer.expected_revision,
        &Some(envelope.expected_revision),
    )?;
    agree(
        "/command/ownerEpoch",
        &outer.owner_epoch,
        &Some(envelope.owner_epoch),
    )?;
    if let Some(mission) = &outer.mission_id {
        agree("/command/missionId", mission, &envelope.mission_id)?;
    }
    let body = body_at(&envelope.body, "/command/body", Some(true))?;
    Ok(Command {
        mission_id: envelope.mission_id,
        run_id: Some(envelope.run_id),
        request_id: Some(envelope.request_id),
        request_digest: digest,
        expected_revision: Some(envelope.expected_revision),
        owner_epoch: Some(envelope.owner_epoch),
        body,
    })
}

fn bare(outer: Outer, digest: Digest) -> Result<Command, Error> {
    let body = body_at(&outer.command, "/command", Some(false))?;
    let mission_id = outer.mission_id.ok_or_else(|| {
        Error::schema(
            "/missionId",
            "expected the mission of a bare command, found none",
        )
    })?;
    if let Some(said) = crate::decide::pipeline::body_epoch(&body) {
        agree("/command/ownerEpoch", &outer.owner_epoch, &Some(said))?;
    }
    let in_run = row(body.kind()).stream == StreamKind::Run;
    let run_id = crate::decide::pipeline::body_run(&body)
        .cloned()
        .filter(|_| in_run);
    Ok(Command {
        mission_id,
        run_id,
        request_id: Some(outer.request_id),
        request_digest: digest,
        expected_revision: outer.expected_revision,
        owner_epoch: outer.owner_epoch,
        body,
    })
}

/// The body at a place. `handoff` says which family may stand there; none allows both.
fn body_at(value: &Value, pointer: &str, handoff: Option<bool>) -> Result<Body, Error> {
    let Value::Object(members) = value else {
        return Err(Error::schema(
            pointer,
            format!("expected a command, found {}", value.kind()),
        ));
    };
    let place = format!("{pointer}/type");
    let name = members.get("type").and_then(Value::as_str);
    let name =
        name.ok_or_else(|| Error::schema(place.clone(), "expected the type of a command"))?;
    let kind = CommandType::parse(name).ok_or_else(|| {
        let found = aiws::error::beginning(name);
        Error::schema(
            place.clone(),
            format!("expected a known command type, found {found:?}"),
        )
    })?;
    let is_handoff = row(kind).family == Family::Handoff;
    if handoff.is_some_and(|wanted| wanted != is_handoff) {
        let where_to = if is_handoff {
            "in an envelope"
        } else {
            "bare, outside an envelope"
        };
        return Err(Error::schema(place, format!("expected {name} {where_to}")));
    }
    let rest: Object = members
        .iter()
        .filter(|(name, _)| *name != "type")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Body::from_members(kind, &Value::Object(rest)).map_err(|error| error.under(pointer))
}

/// Whether a body that was built in code has the shape of the wire: what is recorded must read back (FV-CMD.4).
pub(crate) fn written(body: &Body) -> Result<(), Error> {
    let value = aiws::canonical::to_value(body)?;
    body_at(&value, "", None).map(drop)
}

/// A value that stands in both layers is one value.
fn agree<T: PartialEq>(pointer: &str, outer: &T, inner: &T) -> Result<(), Error> {
    if outer == inner {
        return Ok(());
    }
    Err(Error::schema(
        pointer,
        "expected the value of the outer layer, found another one",
    ))
}
