#!/usr/bin/env bash
# Makes docs/control-quality.md: every policy, at several targets, under every trace of a folder.
#
# usage: docs/control-quality.sh [FOLDER OF TRACES]     without one, those that come with the program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

traces=(--trace azure_llm_conv_1s --trace mooncake_conv_3s --trace nab_nyc_taxi_1800s)
[ $# -gt 0 ] && traces=(--trace "$1")
program=${PODSCALE:-cargo run --quiet --release --}

policies=()
for target in 40 50 60 70 80; do policies+=(--policy "hpa-cpu:target=$target"); done
for part in 20 25 30 35 40; do policies+=(--policy "hpa-rps:target=$part" --policy "keda:target=$part"); done
for part in 1 1.5 1.75 2; do policies+=(--policy "knative:target=$part"); done

{
    cat docs/control-quality.head.md
    $program simulate --scenario docs/examples/frontier.yaml "${traces[@]}" --peak 900 \
        --interpolate --length 168h --seeds 2 "${policies[@]}" --policy oracle -o markdown
} > docs/control-quality.md.new
mv docs/control-quality.md.new docs/control-quality.md
