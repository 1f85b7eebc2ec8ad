#!/bin/sh
# Tries every automation out with every contact and compares what happens with its snapshot. `check.sh --update`
# writes the snapshots: look at the difference before you commit it.
set -u
cd "$(dirname "$0")" || exit 2
failed=0
for automation in automations/*; do
    name=$(basename "$automation")
    name=${name%.*}
    events=events/$name.jsonl
    messaging automation simulate "$automation" --contact contacts/*.json \
        --at 2026-03-01T00:00:00Z --until 2027-03-01T00:00:00Z --templates templates \
        --snapshot "snapshots/$name.json" ${events:+$(test -f "$events" && echo "--events $events")} \
        "$@" >/dev/null || failed=1
done
exit "$failed"
