#!/bin/sh
# The main job on a small repository with a real failing test, unattended and offline:
#   sh examples/run.sh [FOLDER]
# It needs Rust and git. With python3 it also checks the export without the engine.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
if [ "$#" -gt 0 ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/praxis-example.XXXXXX")
fi
repo=$work/repo
store=$work/store
if [ -e "$repo" ] || [ -e "$store" ]; then
    echo "expected an empty folder, found an earlier example in $work" >&2
    exit 2
fi

echo "== build (some minutes the first time)"
cargo build --quiet --package praxis-cli --manifest-path "$root/Cargo.toml"
praxis=${CARGO_TARGET_DIR:-$root/target}/debug/praxis

echo "== a repository with a failing test: $repo"
cp -R "$here/failing-test" "$repo"
mv "$repo/gitignore" "$repo/.gitignore"
rm "$repo/agent.sh"
git -C "$repo" init --quiet
git -C "$repo" add --all
git -C "$repo" -c user.name=Example -c user.email=example@localhost -c commit.gpgsign=false \
    commit --quiet --message "A duration that is wrong by an hour"

# Rust may stand outside HOME; only what is named here reaches the agent and the check.
set --
for name in CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN; do
    if [ -n "$(printenv "$name" || true)" ]; then set -- "$@" --env "$name"; fi
done

# Its last page is the one that show prints below, so here only what happens meanwhile is of interest.
echo "== praxis code"
"$praxis" --store "$store" code --repo "$repo" --task "make the failing test pass" \
    --agent "sh $here/failing-test/agent.sh" --check "cargo test --offline" \
    --max-corrections 2 --approve-as example "$@" >"$work/page.txt" || {
    status=$?
    cat "$work/page.txt"
    exit "$status"
}

echo "== praxis show"
"$praxis" --store "$store" show

echo "== praxis verify"
"$praxis" --store "$store" verify

echo "== the record, checked without the engine"
"$praxis" --store "$store" export "$work/export.jsonl"
if command -v python3 >/dev/null 2>&1; then
    python3 "$root/journal-format/verify.py" "$work/export.jsonl"
else
    echo "python3 is not installed: left out"
fi

echo "== the result, on a branch of its own"
git -C "$repo" --no-pager log --oneline --all
git -C "$repo" --no-pager diff --stat HEAD "$(git -C "$repo" for-each-ref --format='%(refname)' refs/heads/praxis)"
echo
echo "Everything of this run is in $work"
