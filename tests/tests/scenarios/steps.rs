//! Steps: what a worker, a host and a human do with a node, a delivery or a hold, by name.
//! Invariant: each is one request, or a fixed row of requests. The cases put their runs where they want them with these.

use aiws::id::{DeliveryId, HoldId, Id};
use aiws::record::HoldState;
use praxis_artifacts::ArtifactProvider;
use serde_json::{Value as Json, json};

use crate::bodies::{self, Boundary};
use crate::wire::{Answer, id, record};
use crate::world::{HUMAN, W1, World};

impl World {
    /// Prepares an effect admission in the host under the reference `ref-NODE`, operation `op-NODE`.
    pub fn prepare(&mut self, node: &str, action: &Json, approval: Option<&str>) {
        let (operation, attempt) = (self.operation(node), self.attempt(node));
        let proposal = record(&bodies::proposal(&operation, &attempt, action, approval));
        self.policy
            .rules()
            .admissions
            .insert(Id::new(self.reference(node)).unwrap(), proposal);
    }

    /// The id of a node's operation.
    pub fn operation(&self, node: &str) -> String {
        format!("op-{}-{node}", self.run)
    }

    /// The id of a node's first attempt.
    pub fn attempt(&self, node: &str) -> String {
        format!("at-{}-{node}", self.run)
    }

    /// The reference of a node's admission.
    pub fn reference(&self, node: &str) -> String {
        format!("ref-{}-{node}", self.run)
    }

    /// The id of the delivery from one node to another.
    pub fn delivery(&self, from: &str, to: &str) -> String {
        format!("d-{}-{from}-{to}", self.run)
    }

    /// The admission of a task, prepared in the host.
    pub async fn admission(&mut self, node: &str) -> Json {
        self.prepare(node, &bodies::action(node), None);
        let (operation, reference) = (self.operation(node), self.reference(node));
        bodies::admit(&*self.state().await, node, Some((&operation, &reference)))
    }

    /// The dispatch of a task.
    pub async fn dispatch_of(&self, node: &str) -> Json {
        bodies::dispatch(
            &*self.state().await,
            node,
            &self.operation(node),
            &self.attempt(node),
        )
    }

    /// Admits a task.
    pub async fn admit(&mut self, node: &str) -> Answer {
        let body = self.admission(node).await;
        self.send(W1, body).await
    }

    /// Dispatches a task.
    pub async fn dispatch(&mut self, node: &str) -> Answer {
        let body = self.dispatch_of(node).await;
        self.send(W1, body).await
    }

    /// Settles a task's attempt.
    pub async fn settle(&mut self, node: &str, outcome: &str, actual: u64) -> Answer {
        let body = bodies::settle(
            &*self.state().await,
            "settle",
            &self.attempt(node),
            outcome,
            actual,
        );
        self.send(W1, body).await
    }

    /// Admits, dispatches and settles a task as applied for 3.
    pub async fn apply(&mut self, node: &str) {
        self.admit(node).await;
        self.dispatch(node).await;
        self.settle(node, "CONFIRMED_APPLIED", 3).await;
    }

    /// Commits a node's boundary.
    pub async fn commit(&mut self, node: &str, boundary: &Boundary) -> Answer {
        let body = boundary.of(&*self.state().await, node);
        self.send(W1, body).await
    }

    /// A whole task: admitted, dispatched, applied, completed.
    pub async fn work(&mut self, node: &str) {
        self.apply(node).await;
        self.commit(node, &Boundary::completed(json!({}))).await;
    }

    /// A whole task with one artifact of these bytes.
    pub async fn work_with(&mut self, node: &str, bytes: &[u8]) -> aiws::record::Artifact {
        self.apply(node).await;
        let artifact = self
            .shelf
            .put(bytes, node, "text/plain", &id(HUMAN), 500_000)
            .unwrap();
        let mut boundary = Boundary::completed(json!({}));
        boundary.artifacts.push(bodies::json_of(&artifact));
        self.commit(node, &boundary).await;
        artifact
    }

    /// Claims a delivery and gives the token.
    pub async fn claim(&mut self, actor: &str, delivery: &str) -> String {
        self.send(actor, bodies::claim(delivery))
            .await
            .token
            .expect("a token")
    }

    /// The acknowledgement of a delivery's current generation.
    pub async fn ack_of(&self, delivery: &str, token: &str) -> Json {
        let state = self.state().await;
        let generation = state
            .deliveries
            .get(&id::<DeliveryId>(delivery))
            .expect("a delivery")
            .record
            .generation;
        bodies::ack(&state, delivery, token, generation.get())
    }

    /// Acknowledges a delivery.
    pub async fn ack(&mut self, actor: &str, delivery: &str, token: &str) -> Answer {
        let body = self.ack_of(delivery, token).await;
        self.send(actor, body).await
    }

    /// Claims and acknowledges a delivery.
    pub async fn receive(&mut self, actor: &str, delivery: &str) {
        let token = self.claim(actor, delivery).await;
        self.ack(actor, delivery, &token).await;
    }

    /// The human releases every open hold.
    pub async fn release_holds(&mut self) {
        let state = self.state().await;
        let open: Vec<HoldId> = state
            .holds
            .values()
            .filter(|hold| hold.state == HoldState::Open)
            .map(|hold| hold.hold_id.clone())
            .collect();
        for hold in open {
            self.send(HUMAN, bodies::resolve(hold.as_str(), "RECHECK", &[]))
                .await;
        }
    }
}
