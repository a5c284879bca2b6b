//! Opens an engine, registers an adapter and an authorizer, starts a run, watches it, shuts down.
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use aiws::canonical::{from_value, to_bytes};
use aiws::record::{ActorKind, EffectClass, Ref};
use aiws::{error::Error, json::Value, object, strict};
use praxis_artifacts::FileArtifacts;
use praxis_engine::*;

struct Greetings; // Drives every run: each node greets, then concludes.
impl Program for Greetings {
    fn effect(&self, _: &NodeContext) -> Result<EffectPlan, Error> {
        let action = object! { "action": "greet", "scope": "world", "payload": object! {} };
        EffectPlan::new("greeter", action, "1", "root")
    }
    fn conclude(&self, ctx: &NodeContext) -> Result<Conclusion, Error> {
        Ok(Conclusion::completed(&ctx.node))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("usage: embed DIR")?);
    let file = strict::parse(include_bytes!("embed.json"))?;
    let part = |name: &str| file.get(name).cloned().unwrap_or_default();
    let greeter = adapter::from_fn(EffectClass::External, |call| async move {
        println!("hello from {}", call.node_id);
        EffectReport::applied(call.amount, object! { "greeted": true })
    });
    let rules: Ref = from_value(&object! { "id": "house-rules", "revision": "1" })?;
    let authorizer = move |ask: &Ask<'_>| Authorization {
        recovery_authority: ask.capability.actor_kind() == ActorKind::System,
        ..Authorization::as_proposed(ask, rules.clone()) // Yours decides by what is asked.
    };
    let options = Options {
        create: true,
        adapters: BTreeMap::from([("greeter".to_owned(), greeter)]),
        program: Some(Arc::new(Greetings)),
        ..Options::default()
    };
    let ports = Ports {
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        authorizer: Arc::new(authorizer),
        artifacts: Arc::new(FileArtifacts::open(&path.with_extension("artifacts"))?),
    };
    let (engine, host) = Engine::open(&path, options, ports).await?;
    let me = host.capability("me".parse()?, ActorKind::Human, "EXAMPLE", Value::Null);
    let (contract, config) = (from_value(&part("contract"))?, from_value(&part("config"))?);
    let (open, mission, run) = ("open".parse()?, "greetings".parse()?, "first".parse()?);
    engine.open_mission(&me, &open, contract, config).await?;
    for request in part("requests").as_array().unwrap_or_default() {
        engine.apply(&me, &to_bytes(request)).await?;
    }
    let mut states = engine.watch(&mission, &run).await?;
    let done = states.wait_for(|state| state.manifests.size() == 2).await;
    println!("{} hand-offs committed", done?.manifests.size());
    Ok(engine.shutdown(Shutdown::Drain).await?)
}
