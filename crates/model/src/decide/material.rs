//! Material: what a manifest names must have been read back by the host, whole and in time.
//!
//! Invariant: only the host's verified facts count, never an assertion of a caller (HD-03.3, CRD-5).
//! Called by commitBoundary, acknowledgeDelivery, admitConsumer and dispatch.

use aiws::decimal::Dec;
use aiws::digest::Digest;
use aiws::record::{Artifact, HandoffConfig, Material};

use crate::admission::details;
use crate::decision::Rejection;
use crate::facts::{Facts, MaterialError};
use crate::guard::{Guard, check};

/// Every artifact is there, within its retention, and is what its record says.
pub(super) fn verified<'a>(
    artifacts: impl Iterator<Item = &'a Artifact> + Clone,
    facts: &Facts,
) -> Result<(), Rejection> {
    // All of one code before all of the next: which artifact comes first must not decide the error (ERR-PREC.1).
    there(artifacts.clone(), facts)?;
    same(artifacts, facts)
}

fn named(digest: &Digest) -> aiws::json::Object {
    details(&[("digest", digest.to_string().into())])
}

fn there<'a>(
    artifacts: impl Iterator<Item = &'a Artifact>,
    facts: &Facts,
) -> Result<(), Rejection> {
    for artifact in artifacts {
        let error = facts.material_errors.get(&artifact.digest);
        let read = facts.materials.contains_key(&artifact.digest)
            || error == Some(&MaterialError::Mismatch);
        let there = read && error != Some(&MaterialError::Unavailable);
        check(Guard::MaterialAvailable, there, || named(&artifact.digest))?;
        let retained = !artifact.retain_until_ms.reached(facts.now_ms);
        check(Guard::MaterialRetained, retained, || {
            named(&artifact.digest)
        })?;
    }
    Ok(())
}

/// What was read back is what its record says.
fn same<'a>(artifacts: impl Iterator<Item = &'a Artifact>, facts: &Facts) -> Result<(), Rejection> {
    for artifact in artifacts {
        let error = facts.material_errors.get(&artifact.digest);
        let found = facts.materials.get(&artifact.digest);
        let size = found.map(|found| Dec::from(found.size_bytes));
        // What was not read back differs in nothing; the loop above is what asks for it.
        let same = error != Some(&MaterialError::Mismatch)
            && size.is_none_or(|size| size == artifact.size_bytes);
        check(Guard::MaterialMatches, same, || named(&artifact.digest))?;
    }
    Ok(())
}

/// As `verified`, for what a boundary announces: it also outlasts the recovery window of its run from now on, so that
/// whoever takes the run over meanwhile, and the consumers that were not there yet, still find it (HF-04.4).
pub(super) fn announced(
    artifacts: &[Artifact],
    config: &HandoffConfig,
    facts: &Facts,
) -> Result<(), Rejection> {
    there(artifacts.iter(), facts)?;
    for artifact in artifacts {
        let outlasts = latest_ms(artifact, config).is_none_or(|before| facts.now_ms < before);
        check(Guard::MaterialOutlasts, outlasts, || {
            named(&artifact.digest)
        })?;
    }
    same(artifacts.iter(), facts)
}

/// Before when the boundary that announces these is written.
pub(super) fn announced_before(
    artifacts: &[Artifact],
    config: &HandoffConfig,
) -> impl Iterator<Item = u64> {
    let all = artifacts.iter();
    all.filter_map(|artifact| latest_ms(artifact, config))
}

/// Before when an artifact is announced, so that its retention covers the recovery window, or what is left of it where
/// there is none; none for a retention that no machine time reaches.
fn latest_ms(artifact: &Artifact, config: &HandoffConfig) -> Option<u64> {
    let until_ms = artifact.retain_until_ms.to_u64()?;
    let Some(window_ms) = config.recovery_window_ms else {
        return Some(until_ms);
    };
    let last_ms = window_ms
        .get()
        .to_u64()
        .and_then(|window_ms| until_ms.checked_sub(window_ms));
    Some(last_ms.map_or(0, |last_ms| last_ms.saturating_add(1)))
}

/// When the retention of each artifact ends: what builds on it is written before that.
pub(super) fn retained_until<'a>(
    artifacts: impl IntoIterator<Item = &'a Artifact>,
) -> impl Iterator<Item = u64> {
    let all = artifacts.into_iter();
    all.filter_map(|artifact| artifact.retain_until_ms.to_u64())
}

/// The material as the receipt lists it.
pub(super) fn receipt(artifacts: &[Artifact], facts: &Facts) -> Vec<Material> {
    let one = |artifact: &Artifact| {
        let found = facts.materials.get(&artifact.digest)?;
        let (digest, size_bytes) = (artifact.digest, found.size_bytes);
        Some(Material {
            digest,
            size_bytes,
            schema_digest: artifact.schema_digest,
        })
    };
    artifacts.iter().filter_map(one).collect()
}
