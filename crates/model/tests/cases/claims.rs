//! Cases of claim, receipt and release. Invariant and use as in `cases`.

use std::sync::Arc;

use aiws::decimal::{Dec, DecPlus, U64};
use aiws::error::Code;
use aiws::id::DeliveryId;
use aiws::object;
use aiws::record::{ClaimEndCause, DeliveryState, Graph, OutcomeStatus};
use praxis_model::command::{AcknowledgeDelivery, Body, ClaimDelivery, RecoverOwnership};
use praxis_model::facts::{MaterialError, VerifiedMaterial};
use praxis_model::guard::Guard;

use super::{Must, Outcome, accepted, cases, ensure, stopped};
use crate::world::*;

/// LIN with b's delivery claimed by the usual agent, and an artifact in it.
fn claimed() -> Result<(World, DeliveryId), String> {
    let mut world = World::with(lin());
    world.work_with("a", &artifact("patch")).must()?;
    let delivery = world.pending("b");
    world.claim(AGENT, &delivery).must()?;
    Ok((world, delivery))
}

/// The receipt and the release, each refused by this guard.
fn neither(
    world: &World,
    delivery: &DeliveryId,
    guard: Guard,
    code: Code,
    change: impl Fn(&mut AcknowledgeDelivery),
) -> Outcome {
    let mut ack = world.ack_of(delivery);
    change(&mut ack);
    let mut release = world.release_of(delivery);
    release.delivery_id = ack.delivery_id.clone();
    release.claim_token = ack.claim_token;
    release.generation = ack.generation;
    stopped(world, guard, code, |world| {
        world.send(AGENT, Body::AcknowledgeDelivery(ack))
    })?;
    stopped(world, guard, code, |world| {
        world.send(AGENT, Body::ReleaseDelivery(release))
    })
}

fn state_of(world: &World, delivery: &DeliveryId) -> DeliveryState {
    world
        .state()
        .deliveries
        .get(delivery)
        .map_or(DeliveryState::Invalidated, |delivery| delivery.record.state)
}

fn recover(world: &mut World) -> Step {
    let body = RecoverOwnership {
        expected_epoch: Dec::from_u64(world.state().epoch),
        reason: "crash".to_owned(),
        decision_ref: None,
    };
    world.send(ENGINE, Body::RecoverOwnership(body))
}

cases! {
    /// Proves HD-01.T11, HD-01.T1: what does not exist cannot be claimed, received or given back.
    #[test]
    fn an_unknown_delivery_is_refused() {
        let (world, delivery) = claimed()?;
        let ghost: DeliveryId = id("ghost");
        stopped(&world, Guard::DeliveryKnown, Code::DeliveryState, |world| world.claim(AGENT, &ghost))?;
        neither(&world, &delivery, Guard::DeliveryKnown, Code::DeliveryState, |ack| ack.delivery_id = id("ghost"))
    }

    /// Proves HC-CL.1, HD-02.1, HD-02.3, HD-02.6: a claim is exclusive while it lives, has the next generation, and spends nothing.
    #[test]
    fn a_claim_is_exclusive() {
        let (world, delivery) = claimed()?;
        for actor in [AGENT, "agent:w2"] {
            stopped(&world, Guard::ClaimFree, Code::DeliveryState, |world| world.claim(actor, &delivery))?;
        }
        let before = World::with(lin());
        ensure(world.state().operations.size() == 1 && before.state().operations.is_empty(), "a claim made an operation")?;
        let generation = world.state().deliveries.get(&delivery).map(|delivery| delivery.record.generation.get());
        ensure(generation == Some(1), "the first claim has generation 1")
    }

    /// Proves HD-01.T3, HD-02.1: after release, expiry and recovery alike the next claim has a higher generation, and the history keeps how each ended.
    #[test]
    fn claims_end_in_three_ways() {
        let (mut world, delivery) = claimed()?;
        let body = Body::ReleaseDelivery(world.release_of(&delivery));
        world.send(AGENT, body).must()?;
        ensure(state_of(&world, &delivery) == DeliveryState::Pending, "released is pending")?;
        world.claim("agent:w2", &delivery).must()?;
        world.now_ms += 100;
        world.claim("agent:w3", &delivery).must()?;
        recover(&mut world).must()?;
        ensure(state_of(&world, &delivery) == DeliveryState::Pending, "recovered is pending")?;
        let kept = world.state().deliveries.get(&delivery).ok_or("no delivery")?;
        let ends: Vec<_> = kept.ended_claims.iter().map(|(claim, end)| (claim.generation.get(), end.cause)).collect();
        let expected = [(1, ClaimEndCause::Released), (2, ClaimEndCause::Expired), (3, ClaimEndCause::Fenced)];
        ensure(ends == expected, format!("{ends:?}"))
    }

    /// Proves HD-02.10: without a token that the host derived there is no claim, and the ledger keeps its fingerprint alone.
    #[test]
    fn a_claim_needs_a_token() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        let body = Body::ClaimDelivery(ClaimDelivery { delivery_id: world.pending("b"), lease_ms: None });
        stopped(&world, Guard::ClaimFingerprint, Code::InternalStore, |world| {
            let mut facts = world.facts(AGENT);
            facts.claim_fingerprint = None;
            world.apply(&world.command(body), &facts)
        })
    }

    /// Proves HD-03.3, T-81: a receipt is written before the lease ends and before the retention of any material does.
    #[test]
    fn a_receipt_is_written_in_time() {
        let mut world = World::with(lin());
        world.work_with("a", &artifact("patch")).must()?;
        let delivery = world.pending("b");
        world.claim(AGENT, &delivery).must()?;
        let body = Body::AcknowledgeDelivery(world.ack_of(&delivery));
        let decided = praxis_model::decide::run(world.state(), &world.command(body), &world.facts(AGENT));
        let before_ms = decided.map_err(|error| error.to_string())?.before_ms;
        ensure(before_ms == [1_100, 50_000], format!("{before_ms:?}"))
    }

    /// Proves HD-02.7: the lease is the host's bound, or less where less is wanted, and never more.
    #[test]
    fn the_host_bounds_the_lease() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        let delivery_id = world.pending("b");
        for (wanted, granted) in [(None, 100), (Some(7), 7), (Some(100_000), 100)] {
            let lease_ms = wanted.and_then(|wanted| DecPlus::new(dec(wanted)).ok());
            let body = Body::ClaimDelivery(ClaimDelivery { delivery_id: delivery_id.clone(), lease_ms });
            let after = accepted(&world, |world| world.send(AGENT, body))?;
            let claim = after.state().deliveries.get(&delivery_id).and_then(|delivery| delivery.record.claim.clone());
            let lease = claim.map(|claim| claim.expires_at_ms.get() - claim.claimed_at_ms.get());
            ensure(lease == Some(granted), format!("wanted {wanted:?}, got {lease:?}"))?;
        }
        Ok(())
    }

    /// Proves HS-04.6, T-29, HD-02.8: a clock that stepped back under a live claim judges no lease of the run any more, its holder's and anybody else's; taking the run over ends the claim, and then the clock is as good as any.
    #[test]
    fn a_clock_that_stepped_back_judges_no_lease() {
        let (mut world, delivery) = claimed()?;
        let all = [
            Body::ClaimDelivery(ClaimDelivery { delivery_id: delivery.clone(), lease_ms: None }),
            Body::AcknowledgeDelivery(world.ack_of(&delivery)),
            Body::ReleaseDelivery(world.release_of(&delivery)),
        ];
        let stepped = |world: &mut World, body: Body| {
            let mut facts = world.facts(AGENT);
            facts.clock_stepped = true;
            world.apply(&world.command(body), &facts)
        };
        for body in all.clone() {
            stopped(&world, Guard::ClockTrusted, Code::StaleOwner, |world| stepped(world, body))?;
        }
        // What needs no lease goes on, and a lease that has run out is in nobody's doubt.
        let mut late = world.clone();
        late.now_ms += 100;
        accepted(&late, |world| stepped(world, all[0].clone()))?;
        recover(&mut world).must()?;
        // Nothing is live any more: what is in the way now is the hold that the recovery left.
        stopped(&world, Guard::NoOpenHold, Code::HoldActive, |world| stepped(world, all[0].clone()))
    }

    /// Proves HD-02.7, T-81: a claim is written before its own lease ends, or not at all.
    #[test]
    fn a_claim_is_written_in_time() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        let delivery_id = world.pending("b");
        let body = Body::ClaimDelivery(ClaimDelivery { delivery_id, lease_ms: None });
        let decided = praxis_model::decide::run(world.state(), &world.command(body), &world.facts(AGENT));
        let before_ms = decided.map_err(|error| error.to_string())?.before_ms;
        ensure(before_ms == [1_100], format!("{before_ms:?}"))
    }

    /// Proves HD-02.4, ERR-CLAIM_EXPIRED: a claim ends when its time is reached and not before, for receipt and release (T-31).
    #[test]
    fn a_claim_ends_at_equality() {
        let (mut world, delivery) = claimed()?;
        world.now_ms += 99;
        accepted(&world, |world| world.ack(AGENT, &delivery))?;
        world.now_ms += 1;
        neither(&world, &delivery, Guard::ClaimLive, Code::ClaimExpired, |_| {})
    }

    /// Proves HD-02.5, HD-02.2, REL-6, HD-01.T2, ERR-STALE_OWNER: another generation, token, principal or epoch is stale, and is told so even when the lease has ended (T-35).
    #[test]
    fn a_stranger_is_stale_before_expired() {
        let (mut world, delivery) = claimed()?;
        for late in [0, 1_000] {
            world.now_ms += late;
            let generation = |number: u64| DecPlus::new(dec(number)).unwrap_or(DecPlus::one());
            neither(&world, &delivery, Guard::ClaimGeneration, Code::StaleOwner, |ack| ack.generation = generation(2))?;
            // Well-formed beyond u64, and never the current one (T-57).
            let beyond = DecPlus::new(Dec::max()).unwrap_or(DecPlus::one());
            neither(&world, &delivery, Guard::ClaimGeneration, Code::StaleOwner, |ack| ack.generation = beyond)?;
            neither(&world, &delivery, Guard::ClaimToken, Code::StaleOwner, |ack| ack.claim_token = token(99))?;
            let mut ack = world.clone();
            ack.now_ms = world.now_ms;
            stopped(&world, Guard::ClaimPrincipal, Code::StaleOwner, |world| world.ack("agent:w2", &delivery))?;
            stopped(&world, Guard::ClaimPrincipal, Code::StaleOwner, |world| {
                let body = Body::ReleaseDelivery(world.release_of(&delivery));
                world.send("agent:w2", body)
            })?;
            let mut raised = world.clone();
            if let Some(run) = &mut raised.run {
                run.epoch += 1;
            }
            neither(&raised, &delivery, Guard::ClaimEpoch, Code::StaleOwner, |_| {})?;
        }
        Ok(())
    }

    /// Proves HC-RL.1: only the claimant gives a claim back.
    #[test]
    fn only_the_claimant_releases() {
        let (world, delivery) = claimed()?;
        let body = Body::ReleaseDelivery(world.release_of(&delivery));
        stopped(&world, Guard::ClaimPrincipal, Code::StaleOwner, |world| world.send("agent:w2", body.clone()))?;
        let after = accepted(&world, |world| world.send(AGENT, body))?;
        ensure(after.account == world.account && after.state().attempts == world.state().attempts, "a release moved money")
    }

    /// Proves HD-02.8, HD-01.T3: after release and recovery the old token learns that it lost its ownership (T-70).
    #[test]
    fn an_ended_claim_is_stale() {
        let (world, delivery) = claimed()?;
        let ack = world.ack_of(&delivery);
        let mut released = world.clone();
        let body = Body::ReleaseDelivery(released.release_of(&delivery));
        released.send(AGENT, body).must()?;
        neither(&released, &delivery, Guard::ClaimNotEnded, Code::StaleOwner, |_| {})?;
        let mut recovered = World::configured(lin(), |config| config.restart_policy = aiws::record::RestartPolicy::Auto);
        recovered.work("a").must()?;
        let delivery = recovered.pending("b");
        recovered.claim(AGENT, &delivery).must()?;
        recover(&mut recovered).must()?;
        let ack = AcknowledgeDelivery { delivery_id: delivery.clone(), ..ack };
        neither(&recovered, &delivery, Guard::ClaimNotEnded, Code::StaleOwner, |sent| sent.generation = ack.generation)
    }

    /// Proves HD-01.T11, ERR-DELIVERY_STATE: what was never claimed is neither received nor given back.
    #[test]
    fn an_unclaimed_delivery_has_no_holder() {
        let mut world = World::with(lin());
        world.work("a").must()?;
        let delivery = world.pending("b");
        neither(&world, &delivery, Guard::EverClaimed, Code::DeliveryState, |_| {})?;
        // A generation that was never given out does not make an earlier claim.
        let (mut world, delivery) = claimed()?;
        let body = Body::ReleaseDelivery(world.release_of(&delivery));
        world.send(AGENT, body).must()?;
        let generation = |number: u64| DecPlus::new(dec(number)).unwrap_or(DecPlus::one());
        neither(&world, &delivery, Guard::EverClaimed, Code::DeliveryState, |ack| ack.generation = generation(2))
    }

    /// Proves HD-01.T8, HD-01.T9, ERR-DELIVERY_STATE: a receipt is final, also after its lease.
    #[test]
    fn a_receipt_is_final() {
        let (mut world, delivery) = claimed()?;
        world.ack(AGENT, &delivery).must()?;
        world.now_ms += 10_000;
        stopped(&world, Guard::ClaimFree, Code::DeliveryState, |world| world.claim(AGENT, &delivery))?;
        neither(&world, &delivery, Guard::ReceiptOpen, Code::DeliveryState, |_| {})?;
        accepted(&world, |world| world.admit("b")).map(drop)
    }

    /// Proves HC-AK.1, HD-03.11: a receipt completes no task and frees no reservation.
    #[test]
    fn a_receipt_starts_nothing() {
        let (world, delivery) = claimed()?;
        let after = accepted(&world, |world| world.ack(AGENT, &delivery))?;
        ensure(after.state().nodes == world.state().nodes && after.account == world.account, "a receipt moved something")?;
        let receipt = after.state().deliveries.get(&delivery).and_then(|delivery| delivery.record.acknowledgement.clone());
        let receipt = receipt.ok_or("no receipt")?;
        ensure(receipt.materials.len() == 1 && receipt.materials[0].digest == artifact("patch").digest, "the receipt lists the material")
    }

    /// Proves HD-03.1, ERR-BASIS_STALE: a receipt names the exact hand-off.
    #[test]
    fn a_receipt_is_of_the_exact_handoff() {
        let (world, delivery) = claimed()?;
        for change in [0, 1] {
            let mut ack = world.ack_of(&delivery);
            match change {
                0 => ack.handoff.digest = token(0),
                _ => ack.handoff.handoff_id = id("other"),
            }
            stopped(&world, Guard::HandoffExact, Code::BasisStale, |world| world.send(AGENT, Body::AcknowledgeDelivery(ack)))?;
        }
        Ok(())
    }

    /// Proves HD-05.6, HD-03.1: another plan than the pinned one makes every hand-off of it stale.
    #[test]
    fn another_plan_is_stale() {
        let (mut world, delivery) = claimed()?;
        let mut before = World::with(lin());
        before.work("a").must()?;
        let pending = before.pending("b");
        for world in [&mut world, &mut before] {
            if let Some(run) = &mut world.run {
                run.graph = Some(Arc::new(Graph { plan_revision: dec(2), ..lin() }));
            }
        }
        stopped(&before, Guard::BasisGraph, Code::BasisStale, |world| world.claim(AGENT, &pending))?;
        stopped(&world, Guard::BasisGraph, Code::BasisStale, |world| world.ack(AGENT, &delivery))
    }

    /// Proves HF-04.1, HF-04.8, HD-03.3, ERR-ARTIFACT_UNAVAILABLE: only bytes that the host read back count.
    #[test]
    fn a_receipt_needs_the_bytes() {
        let (world, delivery) = claimed()?;
        let digest = artifact("patch").digest;
        let unread = |world: &mut World| {
            world.materials.clear();
            world.ack(AGENT, &delivery)
        };
        stopped(&world, Guard::MaterialAvailable, Code::ArtifactUnavailable, unread)?;
        stopped(&world, Guard::MaterialAvailable, Code::ArtifactUnavailable, |world| {
            world.material_errors.insert(digest, MaterialError::Unavailable);
            world.ack(AGENT, &delivery)
        })?;
        // HF-04.9: the identical bytes reopen the way.
        accepted(&world, |world| world.ack(AGENT, &delivery)).map(drop)
    }

    /// Proves HF-04.4, ART-5: past its retention the material is unavailable, whatever lies on the disk.
    #[test]
    fn a_receipt_needs_retention() {
        let mut world = World::with(lin());
        world.work_with("a", &artifact("patch")).must()?;
        let delivery = world.pending("b");
        world.now_ms = 49_950;
        world.claim(AGENT, &delivery).must()?;
        world.now_ms = 49_999;
        accepted(&world, |world| world.ack(AGENT, &delivery))?;
        world.now_ms = 50_000;
        stopped(&world, Guard::MaterialRetained, Code::ArtifactUnavailable, |world| world.ack(AGENT, &delivery))
    }

    /// Proves ART-4, ERR-ARTIFACT_MISMATCH: other bytes, or another size, are another artifact.
    #[test]
    fn a_receipt_needs_the_same_bytes() {
        let (world, delivery) = claimed()?;
        let digest = artifact("patch").digest;
        stopped(&world, Guard::MaterialMatches, Code::ArtifactMismatch, |world| {
            world.material_errors.insert(digest, MaterialError::Mismatch);
            world.ack(AGENT, &delivery)
        })?;
        stopped(&world, Guard::MaterialMatches, Code::ArtifactMismatch, |world| {
            world.materials.insert(digest, VerifiedMaterial { size_bytes: U64(4) });
            world.ack(AGENT, &delivery)
        })
    }

    /// Proves HD-01.T1, HF-04.7, ERR-INPUT_INCOMPATIBLE: an outcome that the consumer's mapping does not accept is not even claimed.
    #[test]
    fn the_mapping_accepts_the_outcome() {
        let only_skipped = [OutcomeStatus::Skipped];
        let mut world = World::configured(lin(), |config| {
            config.mappings = vec![mapping("b", "in", "a", &only_skipped, None)];
        });
        world.work("a").must()?;
        let delivery = world.pending("b");
        stopped(&world, Guard::OutcomeAccepted, Code::InputIncompatible, |world| world.claim(AGENT, &delivery))
    }

    /// Proves HF-04.7, HF-04.8, ERR-INPUT_INCOMPATIBLE: a result that does not fit the consumer's schema is not received.
    #[test]
    fn the_result_fits_the_consumer() {
        let schema = object! { "type": "object", "required": vec!["patch"] };
        let mut world = World::configured(lin(), |config| {
            config.mappings = vec![mapping("b", "in", "a", &[OutcomeStatus::Completed], Some(schema))];
        });
        world.apply_task("a").must()?;
        let mut fitting = world.clone();
        world.complete("a", object! {}).must()?;
        fitting.complete("a", object! { "patch": "diff" }).must()?;
        let delivery = world.pending("b");
        world.claim(AGENT, &delivery).must()?;
        stopped(&world, Guard::InputFits, Code::InputIncompatible, |world| world.ack(AGENT, &delivery))?;
        fitting.receive("b").must().map(drop)
    }

    /// Proves ERR-PREC.1: the checks of a receipt answer in their order, as one after the other is mended: claim, lease, exact hand-off, plan, material, schema.
    #[test]
    fn the_checks_of_a_receipt_answer_in_order() {
        let schema = object! { "type": "object", "required": vec!["patch"] };
        let mut world = World::configured(lin(), |config| {
            config.mappings = vec![mapping("b", "in", "a", &[OutcomeStatus::Completed], Some(schema))];
        });
        world.work_with("a", &artifact("patch")).must()?;
        let delivery = world.pending("b");
        world.claim(AGENT, &delivery).must()?;
        let good = world.ack_of(&delivery);
        let mut ack = good.clone();
        ack.claim_token = token(99);
        ack.handoff.digest = token(0);
        let mut broken = world.clone();
        broken.materials.clear();
        broken.now_ms += 100;
        if let Some(run) = &mut broken.run {
            run.graph = Some(Arc::new(Graph { plan_revision: dec(2), ..lin() }));
        }
        let send = |world: &mut World, ack: &AcknowledgeDelivery| world.send(AGENT, Body::AcknowledgeDelivery(ack.clone()));
        stopped(&broken, Guard::ClaimToken, Code::StaleOwner, |world| send(world, &ack))?;
        ack.claim_token = good.claim_token;
        stopped(&broken, Guard::ClaimLive, Code::ClaimExpired, |world| send(world, &ack))?;
        broken.now_ms -= 100;
        stopped(&broken, Guard::HandoffExact, Code::BasisStale, |world| send(world, &ack))?;
        stopped(&broken, Guard::BasisGraph, Code::BasisStale, |world| send(world, &good))?;
        broken.run = world.run.clone();
        stopped(&broken, Guard::MaterialAvailable, Code::ArtifactUnavailable, |world| send(world, &good))?;
        stopped(&world, Guard::InputFits, Code::InputIncompatible, |world| send(world, &good))
    }
}
