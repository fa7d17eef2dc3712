#!/bin/sh
# Reviews the current branch against BASE (default origin/main, else main) and
# prints the findings. Exit code 0: none that is high; 1: at least one; else the
# run has failed.
#
#   review.sh [BASE]
#   REVIEW_MODEL=claude review.sh v1.2.0    # a Model of model.yaml; default gpt
#   REVIEW_JSON=1 review.sh                 # the answer as JSON
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(git rev-parse --show-toplevel) || exit 2
base=${1:-}
[ -n "$base" ] || base=$(git rev-parse --verify -q --abbrev-ref origin/main || echo main)
git rev-parse --verify -q "$base^{commit}" >/dev/null || { echo "review.sh: there is no commit $base" >&2; exit 2; }

result=$(agentctl run -f "$here" --model "${REVIEW_MODEL:-gpt}" --input "base=$base" --workspace "$top" -o json) || exit $?
answer=$(printf %s "$result" | jq -er .output) || exit 1
if [ -n "${REVIEW_JSON:-}" ]; then
  printf '%s\n' "$answer"
else
  printf %s "$answer" | jq -r '.summary, (.findings[] | "\n\(.file):\(.line): \(.severity): \(.title)\n  \(.body)")'
fi
printf %s "$answer" | jq -e '[.findings[] | select(.severity == "high")] == []' >/dev/null
