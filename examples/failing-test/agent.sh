#!/bin/sh
# A scripted agent: what a coding agent's command line would do, without one.
# It is started once per stage, inside a private clone of the repository.
# Its first patch is wrong on purpose; the second one reads the failed check and is right.
set -eu

case "$PRAXIS_STAGE" in
plan)
    cat >"$PRAXIS_OUTPUT_DIR/plan.md" <<PLAN
# Plan

Task: $(cat "$PRAXIS_TASK_FILE")

1. \`duration_text\` counts the minutes of whole hours twice: 1h 02m 05s comes out as 1h 62m 05s.
2. Take the minutes from what the hours leave over, in src/lib.rs.
3. Leave the tests as they are; they say what is wanted.
PLAN
    echo "wrote the plan"
    ;;
implement)
    echo "carrying out a plan of $(wc -l <"$PRAXIS_PLAN_FILE") lines"
    sed -i.orig 's|seconds / 60, seconds % 60|seconds % 60, seconds % 60|' src/lib.rs
    rm src/lib.rs.orig
    ;;
correct)
    echo "the check said:"
    grep -E 'panicked|left:|right:' "$PRAXIS_FEEDBACK_FILE" || true
    sed -i.orig 's|seconds % 60, seconds % 60|seconds % 3600 / 60, seconds % 60|' src/lib.rs
    rm src/lib.rs.orig
    ;;
esac
echo 1 >"$PRAXIS_USAGE_FILE"
