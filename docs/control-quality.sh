#!/usr/bin/env bash
# Makes docs/control-quality.md: every policy, at several targets, under every trace of a folder.
#
# usage: docs/control-quality.sh [FOLDER OF TRACES]     without one, those that come with the program
# PODSCALE names the program; without it, it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

traces=(--trace azure_llm_conv_1s --trace mooncake_conv_3s --trace nab_nyc_taxi_1800s)
[ $# -gt 0 ] && traces=(--trace "$1")
program=${PODSCALE:-cargo run --quiet --release --}
common=("${traces[@]}" --interpolate --length 168h --seeds 2 -o markdown)

target='spec.metrics[0].external.target.averageValue'
served='spec.queue={"length":"waiting","arrivals":"requests","itemsPerSecond":"%s","within":"30s"}'

peers=(--policy fixed:replicas=26)
for percent in 50 60 70 80; do peers+=(--policy "hpa-cpu:target=$percent"); done
for rps in 25 30 35 40; do peers+=(--policy "hpa-rps:target=$rps" --policy "keda:target=$rps"); done
for in_flight in 1.25 1.5 1.75 2; do peers+=(--policy "knative:target=$in_flight"); done
peers+=(--policy oracle)

variants=(
    --variant "window: spec.window={\"stable\":\"60s\"}"
    --variant "lead: spec.lead={}"
    --variant "headroom: spec.headroom={}"
    --variant "predict: spec.predict={}"
    --variant "queue: $(printf "$served" 35)"
)
for rps in 30 35 40; do
    for profile in Cheap Balanced Safe; do
        variants+=(--variant "$profile at $rps: spec.profile=$profile;$target=\"$rps\"")
    done
done

consumer=(--policy hpa-cpu --policy hpa-rps --policy keda --policy knative --policy fixed:replicas=26 --policy oracle)
drained='spec.queue={"length":"waiting","arrivals":"arriving","itemsPerSecond":"%s","within":"30s"}'
queues=()
for items in 3 4 5; do
    queues+=(--variant "queue at $items: $(printf "$drained" "$items")")
done
for profile in Cheap Balanced Safe; do queues+=(--variant "$profile: spec.profile=$profile"); done

{
    cat docs/control-quality.head.md
    printf '# A service\n\n'
    $program simulate --scenario docs/examples/frontier.yaml --peak 900 "${common[@]}" "${variants[@]}" "${peers[@]}"
    printf '# A consumer\n\n'
    $program simulate --scenario docs/examples/frontier-queue.yaml --peak 90 "${common[@]}" "${queues[@]}" "${consumer[@]}"
} > docs/control-quality.md.new
mv docs/control-quality.md.new docs/control-quality.md
