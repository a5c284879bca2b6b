//! The git workspace on real repositories.
//! Invariant: each test has a repository, a store and an agent's mischief of its own.
//! Run by `cargo test`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use aiws::error::Code;
use tempfile::TempDir;

use super::Workspace;
use crate::coding::git::Git;
use crate::coding::source::Source;

struct World {
    dir: TempDir,
    repo: PathBuf,
    workspace: Workspace,
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Git::inside(dir)
        .env("GIT_OPTIONAL_LOCKS", "1")
        .args(args)
        .run()
        .unwrap();
    String::from_utf8_lossy(&output).trim().to_owned()
}

fn repository(at: &Path) {
    fs::create_dir_all(at).unwrap();
    git(
        at,
        &["init", "--quiet", "--template=", "--initial-branch=main"],
    );
    fs::write(at.join("kept.txt"), "kept\n").unwrap();
    fs::write(at.join("removed.txt"), "removed\n").unwrap();
    fs::write(at.join(".gitignore"), "ignored/\n").unwrap();
    git(at, &["add", "--all"]);
    git(at, &["commit", "--quiet", "--message", "base"]);
}

fn world() -> World {
    let dir = TempDir::new().unwrap();
    let repo = dir.path().canonicalize().unwrap().join("repo");
    repository(&repo);
    let source = Source::open(&repo).unwrap();
    let workspace = Workspace::at(&dir.path().join("store"), "r-1", &source.base);
    workspace.prepare(&repo).unwrap();
    World {
        dir,
        repo,
        workspace,
    }
}

#[test]
fn a_change_survives_as_a_patch_and_comes_back_as_the_same_tree() {
    let world = world();
    let clone = world.workspace.materialize("clone", b"").unwrap();
    fs::write(clone.join("kept.txt"), "changed\n").unwrap();
    fs::remove_file(clone.join("removed.txt")).unwrap();
    fs::write(clone.join("binary \u{e9}"), [0u8, 255, 10, 13]).unwrap();
    fs::write(clone.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(clone.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", clone.join("link")).unwrap();
    fs::create_dir(clone.join("ignored")).unwrap();
    fs::write(clone.join("ignored/cache"), "x").unwrap();

    let captured = world.workspace.capture().unwrap();
    assert_eq!(
        world.workspace.tree_of(&captured.patch).unwrap(),
        captured.tree
    );
    assert_eq!(
        world.workspace.changed_files().unwrap(),
        [
            "A binary \u{e9}",
            "M kept.txt",
            "A link",
            "D removed.txt",
            "A run.sh"
        ]
    );

    let check = world
        .workspace
        .materialize("check-0", &captured.patch)
        .unwrap();
    assert_eq!(
        fs::read_to_string(check.join("kept.txt")).unwrap(),
        "changed\n"
    );
    assert_eq!(
        fs::read(check.join("binary \u{e9}")).unwrap(),
        [0u8, 255, 10, 13]
    );
    assert_eq!(
        fs::read_link(check.join("link")).unwrap(),
        Path::new("/etc/passwd")
    );
    assert!(
        fs::metadata(check.join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o100
            != 0
    );
    assert!(!check.join("removed.txt").exists() && !check.join("ignored").exists());
}

#[test]
fn the_same_work_gives_the_same_patch_again() {
    let world = world();
    let mut patches = Vec::new();
    for _ in 0..2 {
        let clone = world.workspace.materialize("clone", b"").unwrap();
        fs::write(clone.join("kept.txt"), "changed\n").unwrap();
        patches.push(world.workspace.capture().unwrap().patch);
    }
    assert_eq!(patches[0], patches[1]);
}

#[test]
fn an_untouched_clone_has_an_empty_patch() {
    let world = world();
    world.workspace.materialize("clone", b"").unwrap();
    assert!(world.workspace.capture().unwrap().patch.is_empty());
}

#[test]
fn what_an_agent_committed_counts_and_its_configuration_and_hooks_do_not() {
    let world = world();
    let clone = world.workspace.materialize("clone", b"").unwrap();
    let proof = world.dir.path().join("ran");
    let evil = format!("touch {}", proof.display());
    for (key, value) in [
        ("core.fsmonitor", &evil),
        ("filter.x.clean", &evil),
        ("diff.external", &evil),
    ] {
        git(&clone, &["config", key, value]);
    }
    fs::write(clone.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
    fs::create_dir_all(clone.join(".git/hooks")).unwrap();
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-index-change",
        "reference-transaction",
    ] {
        let path = clone.join(".git/hooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\n{evil}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(clone.join("kept.txt"), "committed\n").unwrap();
    let captured = world.workspace.capture().unwrap();
    assert!(String::from_utf8_lossy(&captured.patch).contains("+committed"));
    world
        .workspace
        .materialize("check-0", &captured.patch)
        .unwrap();
    assert!(!proof.exists(), "something of the agent's git ran");
}

#[test]
fn a_repository_inside_the_tree_is_refused_by_name() {
    let world = world();
    let clone = world.workspace.materialize("clone", b"").unwrap();
    repository(&clone.join("vendor/inner"));
    let refused = world.workspace.capture().unwrap_err();
    assert_eq!(refused.code(), Code::RepoUnusable);
    assert!(refused.message.contains("vendor/inner"), "{refused}");
}

#[test]
fn a_clone_that_became_a_symlink_is_not_followed() {
    let world = world();
    let clone = world.workspace.materialize("clone", b"").unwrap();
    fs::remove_dir_all(&clone).unwrap();
    symlink(&world.repo, &clone).unwrap();
    assert_eq!(
        world.workspace.capture().unwrap_err().code(),
        Code::RepoUnusable
    );
    world.workspace.materialize("clone", b"").unwrap();
    assert!(
        world.repo.join("kept.txt").exists(),
        "the link's target was removed"
    );
}

#[test]
fn work_only_reads_the_users_repository() {
    let world = world();
    let before = snapshot(&world.repo);
    let clone = world.workspace.materialize("clone", b"").unwrap();
    fs::write(clone.join("kept.txt"), "changed\n").unwrap();
    world.workspace.capture().unwrap();
    Source::open(&world.repo).unwrap();
    assert_eq!(snapshot(&world.repo), before);
}

/// Every file below a directory with its bytes.
fn snapshot(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path)
            } else {
                files.push((path.clone(), fs::read(&path).unwrap()))
            }
        }
    }
    files.sort();
    files
}

#[test]
fn bad_repositories_get_their_codes() {
    let world = world();
    let path = |name: &str| world.dir.path().join(name);
    fs::create_dir(path("plain")).unwrap();
    fs::write(path("file"), "").unwrap();
    git(world.dir.path(), &["init", "--quiet", "--bare", "bare"]);
    git(world.dir.path(), &["init", "--quiet", "empty"]);
    repository(&path("dirty"));
    fs::write(path("dirty").join("kept.txt"), "dirty\n").unwrap();
    repository(&path("untracked"));
    fs::write(path("untracked").join("new"), "new\n").unwrap();
    repository(&path("sub"));
    fs::create_dir(path("sub").join("ignored")).unwrap();
    let cases = [
        ("missing", Code::RepoNotFound, "missing"),
        ("plain", Code::RepoNotFound, "found none"),
        ("file", Code::RepoNotFound, "found a file"),
        ("bare", Code::RepoUnusable, "bare"),
        ("empty", Code::RepoUnusable, "no commit yet"),
        ("dirty", Code::RepoDirty, "kept.txt"),
        ("untracked", Code::RepoDirty, "stash --include-untracked"),
        ("sub/ignored", Code::RepoNotFound, "name its top directory"),
    ];
    for (name, code, words) in cases {
        let refused = Source::open(&path(name)).unwrap_err();
        assert_eq!(refused.code(), code, "{name}: {refused}");
        assert!(refused.message.contains(words), "{name}: {refused}");
    }
}

#[test]
fn a_store_inside_the_work_tree_is_refused() {
    let world = world();
    let source = Source::open(&world.repo).unwrap();
    assert_eq!(
        source
            .require_outside(&world.repo.join("a/b"))
            .unwrap_err()
            .code(),
        Code::Usage
    );
    source
        .require_outside(&world.dir.path().join("store"))
        .unwrap();
}

/// The root of a machine may remove everything, so the permissions themselves are looked at.
#[test]
fn a_directory_that_cannot_be_written_is_made_removable_without_following_links() {
    let dir = TempDir::new().unwrap();
    let (tree, victim) = (dir.path().join("tree"), dir.path().join("victim"));
    fs::create_dir_all(tree.join("cache/inner")).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::write(tree.join("cache/inner/file"), "x").unwrap();
    symlink(&victim, tree.join("cache/link")).unwrap();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for (path, bits) in [
        (tree.join("cache/inner"), 0o000),
        (tree.join("cache"), 0o555),
        (victim.clone(), 0o500),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }
    super::unlock(&tree).unwrap();
    assert_eq!(
        [mode(&tree.join("cache")), mode(&tree.join("cache/inner"))],
        [0o755, 0o700]
    );
    assert_eq!(mode(&victim), 0o500, "a link was followed");
    super::remove(&tree).unwrap();
    assert!(!tree.exists() && victim.exists());
}

/// What an agent writes into the engine's own repository is not obeyed, and what it removes is there again.
#[test]
fn the_engines_repository_is_its_own_at_each_use() {
    let world = world();
    let clone = world.workspace.materialize("clone", b"").unwrap();
    let proof = world.dir.path().join("ran");
    let evil = format!("touch {}; cat", proof.display());
    let engine = world.workspace.engine_git();
    git(&engine, &["config", "filter.x.clean", &evil]);
    fs::create_dir_all(engine.join("info")).unwrap();
    fs::write(engine.join("info/attributes"), "* filter=x\n").unwrap();
    fs::write(clone.join(".gitattributes"), "* filter=x\n").unwrap();
    fs::write(clone.join("kept.txt"), "changed\n").unwrap();
    let captured = world.workspace.capture().unwrap();
    assert!(!proof.exists(), "a filter of the agent's ran");
    let victim = world.dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let spoiled: [fn(&Path, &Path); 4] = [
        |engine, _| fs::remove_dir_all(engine).unwrap(),
        |engine, _| fs::write(engine.join("HEAD"), "nonsense").unwrap(),
        |engine, _| fs::remove_dir_all(engine.join("refs")).unwrap(),
        |engine, victim| {
            fs::remove_dir_all(engine).unwrap();
            symlink(victim, engine).unwrap();
        },
    ];
    for spoil in spoiled {
        spoil(&engine, &victim);
        world.workspace.prepare(&world.repo).unwrap();
        assert_eq!(world.workspace.capture().unwrap(), captured);
    }
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn a_pipe_in_the_place_of_gits_own_files_is_refused_by_name() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let world = world();
    for name in [".gitignore", "sub/.gitattributes", "sub/.git/HEAD"] {
        let path = world
            .workspace
            .materialize("clone", b"")
            .unwrap()
            .join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(fs::remove_file(&path));
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let refused = world.workspace.capture().unwrap_err();
        assert!(refused.message.contains(name), "{refused}");
    }
}

/// A look at the user's repository runs none of its filters, and the way back from it obeys none of its addresses.
#[test]
fn the_users_configuration_neither_runs_nor_redirects_anything() {
    let world = world();
    let proof = world.dir.path().join("ran");
    let evil = format!("touch {}; cat", proof.display());
    fs::write(world.repo.join(".gitattributes"), "* filter=x=y\n").unwrap();
    git(&world.repo, &["add", "--all"]);
    git(&world.repo, &["commit", "--quiet", "--message", "filtered"]);
    for (key, value) in [
        ("filter.x=y.clean", evil.as_str()),
        ("filter.x=y.process", &evil),
        ("filter.x=y.required", "true"),
        ("url.https://nowhere.invalid/.insteadOf", "/"),
        ("protocol.file.allow", "never"),
        ("protocol.allow", "never"),
    ] {
        git(&world.repo, &["config", key, value]);
    }
    // Another inode and another time: the content has to be looked at.
    let kept = world.repo.join("kept.txt");
    fs::remove_file(&kept).unwrap();
    fs::write(&kept, "kept\n").unwrap();
    Source::open(&world.repo).unwrap();
    assert!(!proof.exists(), "a filter of the repository ran");
    super::fetch(
        &world.repo,
        &world.workspace.engine_git(),
        "refs/praxis/base",
    )
    .unwrap();
}
