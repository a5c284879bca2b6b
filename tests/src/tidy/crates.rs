//! The crate table: who may depend on whom, and the one crate that may name a library.
//! Invariant: a crate that is not in the table is a failure, so the table is always the whole workspace.
//! Its tests run it over `cargo metadata`; `licences` reads the same manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::repo;

/// Crate by crate, the crates of the workspace that it may depend on: one straight line.
const LINE: &[(&str, &[&str])] = &[
    ("aiws", &[]),
    ("praxis-plant", &[]),
    ("praxis-model", &["aiws", "praxis-plant"]),
    (
        "praxis-journal-format",
        &["aiws", "praxis-plant", "praxis-model"],
    ),
    ("praxis-sync", &[]),
    (
        "praxis-journal",
        &[
            "aiws",
            "praxis-plant",
            "praxis-model",
            "praxis-journal-format",
            "praxis-sync",
        ],
    ),
    ("praxis-artifacts", &["aiws", "praxis-plant"]),
    (
        "praxis-engine",
        &[
            "aiws",
            "praxis-model",
            "praxis-journal-format",
            "praxis-sync",
            "praxis-journal",
            "praxis-artifacts",
        ],
    ),
    (
        "aiws-sdk",
        &[
            "aiws",
            "praxis-model",
            "praxis-journal-format",
            "praxis-journal",
            "praxis-artifacts",
            "praxis-engine",
        ],
    ),
    (
        "praxis-cli",
        &[
            "aiws",
            "praxis-model",
            "praxis-journal-format",
            "praxis-journal",
            "praxis-artifacts",
            "praxis-engine",
            "praxis-simulations",
        ],
    ),
];

/// Crates that may see everything but `praxis-tests`, and name every library.
const OVERSEERS: &[&str] = &["praxis-simulations", "praxis-tests"];

/// Library by library, the one crate whose shipped code may name it.
const NAMED_BY: &[(&str, &str)] = &[
    ("serde_json", "aiws"),
    ("sha2", "aiws"),
    ("hmac", "aiws"),
    ("jsonschema", "aiws"),
    ("ruint", "aiws"),
    ("bincode", "praxis-journal-format"),
    ("ed25519-dalek", "praxis-journal-format"),
    ("loom", "praxis-sync"),
    ("redb", "praxis-journal"),
    ("ractor", "praxis-engine"),
    ("clap", "praxis-cli"),
    ("clap_complete", "praxis-cli"),
    ("clap_mangen", "praxis-cli"),
    ("toml", "praxis-cli"),
];

/// Libraries that bring a clock, randomness, I/O or async: none of the pure crates, nor `praxis-sync`, names one.
const WORLDLY: &[&str] = &[
    "tokio",
    "futures",
    "async-trait",
    "rand",
    "getrandom",
    "fastrand",
    "uuid",
    "time",
    "chrono",
    "jiff",
    "rustix",
    "libc",
    "tracing",
    "tempfile",
];
const UNWORLDLY: &[&str] = &[
    "aiws",
    "praxis-model",
    "praxis-journal-format",
    "praxis-sync",
];

/// One dependency as a manifest states it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dependency {
    /// The crate that names it.
    pub by: String,
    /// The package that is named.
    pub name: String,
    /// True for a crate of this workspace.
    pub internal: bool,
    /// True when only tests, benches or examples see it.
    pub dev: bool,
}

/// The packages of the workspace and what their manifests name.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Names of the packages.
    pub packages: BTreeSet<String>,
    /// Every dependency of every manifest.
    pub dependencies: Vec<Dependency>,
}

impl Workspace {
    /// Reads the manifests through `cargo metadata --no-deps`, which needs no network.
    ///
    /// # Panics
    /// When cargo does not answer.
    pub fn read() -> Workspace {
        let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
        match serde_json::from_str::<Value>(&text) {
            Ok(metadata) => Workspace::from_metadata(&metadata),
            Err(error) => panic!("cargo metadata is not JSON: {error}"),
        }
    }

    fn from_metadata(metadata: &Value) -> Workspace {
        let mut workspace = Workspace {
            packages: BTreeSet::new(),
            dependencies: Vec::new(),
        };
        for package in array(&metadata["packages"]) {
            let by = text(&package["name"]);
            for dependency in array(&package["dependencies"]) {
                workspace.dependencies.push(Dependency {
                    by: by.clone(),
                    name: text(&dependency["name"]),
                    internal: !dependency["path"].is_null(),
                    dev: text(&dependency["kind"]) == "dev",
                });
            }
            workspace.packages.insert(by);
        }
        workspace
    }

    /// External package name to the crates that name it.
    pub fn external(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for dependency in self.dependencies.iter().filter(|d| !d.internal) {
            named
                .entry(&dependency.name)
                .or_default()
                .insert(&dependency.by);
        }
        named
    }
}

/// Runs cargo at the root and returns what it prints. Asks the network only if what is on disk does not suffice, as when
/// a single crate was built in a fresh clone.
///
/// # Panics
/// When it fails, with what it says.
pub fn cargo(arguments: &[&str]) -> String {
    run_cargo(&[arguments, &["--offline"]].concat())
        .or_else(|_| run_cargo(arguments))
        .unwrap_or_else(|problem| panic!("cargo {arguments:?}: {problem}"))
}

fn run_cargo(arguments: &[&str]) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(repo::root())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What breaks the crate table.
pub fn problems(workspace: &Workspace) -> Vec<String> {
    let mut problems: Vec<String> = workspace
        .dependencies
        .iter()
        .filter_map(|dependency| match dependency.internal {
            true => internal_problem(dependency),
            false => external_problem(dependency),
        })
        .collect();
    for package in &workspace.packages {
        if line(package).is_none() && !OVERSEERS.contains(&package.as_str()) {
            problems.push(format!("{package} is not in the crate table"));
        }
    }
    problems
}

fn internal_problem(dependency: &Dependency) -> Option<String> {
    let Dependency { by, name, .. } = dependency;
    let allowed = match line(by) {
        Some(below) => below.contains(&name.as_str()),
        None => OVERSEERS.contains(&by.as_str()) && name != "praxis-tests",
    };
    (!allowed).then(|| format!("{by} may not depend on {name}"))
}

fn external_problem(dependency: &Dependency) -> Option<String> {
    let Dependency { by, name, dev, .. } = dependency;
    if *dev || OVERSEERS.contains(&by.as_str()) {
        return None;
    }
    if UNWORLDLY.contains(&by.as_str()) && WORLDLY.contains(&name.as_str()) {
        return Some(format!("{by} knows no world and may not name {name}"));
    }
    let (_, owner) = NAMED_BY.iter().find(|(library, _)| library == name)?;
    (owner != by).then(|| format!("only {owner} may name {name}, and {by} does"))
}

fn line(package: &str) -> Option<&'static [&'static str]> {
    LINE.iter()
        .find(|(name, _)| *name == package)
        .map(|(_, below)| *below)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::require;

    #[test]
    fn the_crate_table_holds() {
        let workspace = Workspace::read();
        assert!(
            workspace.packages.contains("praxis-tests"),
            "{:?}",
            workspace.packages
        );
        require("the crate table", &problems(&workspace));
        let missing: Vec<&str> = LINE
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !workspace.packages.contains(*name))
            .collect();
        assert!(
            missing.is_empty(),
            "in the table and not in the workspace: {missing:?}"
        );
    }

    #[test]
    fn the_crate_table_can_fail() {
        let case = |by: &str, name: &str, internal: bool, dev: bool| {
            let dependency = Dependency {
                by: by.into(),
                name: name.into(),
                internal,
                dev,
            };
            let workspace = Workspace {
                packages: BTreeSet::from([by.to_owned()]),
                dependencies: vec![dependency],
            };
            problems(&workspace).len()
        };
        let cases = [
            ("aiws", "praxis-model", true, false, 1),
            ("praxis-journal", "praxis-engine", true, true, 1),
            ("praxis-engine", "praxis-simulations", true, false, 1),
            ("praxis-simulations", "praxis-tests", true, false, 1),
            ("praxis-cli", "praxis-simulations", true, false, 0),
            ("aiws-sdk", "praxis-simulations", true, false, 1),
            ("praxis-tests", "praxis-cli", true, false, 0),
            ("praxis-model", "serde_json", false, false, 1),
            ("praxis-model", "serde_json", false, true, 0),
            ("praxis-engine", "redb", false, false, 1),
            ("praxis-journal", "redb", false, false, 0),
            ("praxis-sync", "tokio", false, false, 1),
            ("praxis-new", "serde", false, false, 1),
        ];
        for (by, name, internal, dev, wanted) in cases {
            assert_eq!(case(by, name, internal, dev), wanted, "{by} -> {name}");
        }
    }
}
