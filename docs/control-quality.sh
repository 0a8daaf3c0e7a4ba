#!/usr/bin/env bash
# Makes docs/control-quality.md: every policy, at several targets, under every trace of a folder.
#
# usage: docs/control-quality.sh [FOLDER OF TRACES]     without one, those that come with the program
# PODSCALE names the program; without it, it is built. SEEDS and LENGTH replace 2 and 168h.
#
# Of a folder, the first, third, fifth … trace by name are those on which parameters may be chosen; the others are held
# out, and come first on the page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chosen=() held=() all=(--trace azure_llm_conv_1s --trace mooncake_conv_3s --trace nab_nyc_taxi_1800s)
if [ $# -gt 0 ]; then
    all=(--trace "$1")
    place=0
    for file in "$1"/*.csv.gz "$1"/*.csv; do
        [ -e "$file" ] || continue
        if [ $((place % 2)) = 0 ]; then chosen+=(--trace "$file"); else held+=(--trace "$file"); fi
        place=$((place + 1))
    done
fi
program=${PODSCALE:-cargo run --quiet --release --}
common=(--interpolate --length "${LENGTH:-168h}" --seeds "${SEEDS:-2}" -o markdown)

target='spec.metrics[0].external.target.averageValue'
served='spec.queue={"length":"waiting","arrivals":"requests","itemsPerSecond":"%s","within":"%s"}'
up='spec.behavior.scaleUp={"policies":[{"type":"Pods","value":100,"periodSeconds":15}]}'
down='spec.behavior.scaleDown={"tolerance":"0.3"}'

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
    --variant "queue: $(printf "$served" 35 30s)"
)
for rps in 35 40; do
    for profile in Cheap Balanced Safe; do
        variants+=(--variant "$profile at $rps: spec.profile=$profile;$target=\"$rps\"")
    done
done
for rps in 30 33 36 39 42; do
    quick="spec.syncPeriod=1s;$target=\"$rps\";$up;$down;$(printf "$served" "$rps" 1s)"
    variants+=(--variant "quick at $rps: $quick")
done
for rps in 36 38 40 42; do
    quick="spec.syncPeriod=1s;$target=\"$rps\";$up;$down;$(printf "$served" "$rps" 1s)"
    variants+=(--variant "learned at $rps: $quick;spec.headroom={\"overloadPermille\":2,\"limitPercent\":100}")
done

consumer=(--policy hpa-cpu --policy hpa-rps --policy keda --policy knative --policy fixed:replicas=26 --policy oracle)
drained='spec.queue={"length":"waiting","arrivals":"arriving","itemsPerSecond":"%s","within":"30s"}'
queues=()
for items in 3 4 5; do
    queues+=(--variant "queue at $items: $(printf "$drained" "$items")")
done
for profile in Cheap Balanced Safe; do queues+=(--variant "$profile: spec.profile=$profile"); done

service() {
    $program simulate --scenario docs/examples/frontier.yaml --peak 900 "$@" "${common[@]}" "${variants[@]}" "${peers[@]}"
}

{
    cat docs/control-quality.head.md
    if [ ${#held[@]} -gt 0 ]; then
        printf '# A service under loads that were held out\n\n'
        service "${held[@]}"
        printf '# A service under loads on which parameters were chosen\n\n'
        service "${chosen[@]}"
    else
        printf '# A service\n\n'
        service "${all[@]}"
    fi
    printf '# A consumer\n\n'
    $program simulate --scenario docs/examples/frontier-queue.yaml --peak 90 "${all[@]}" "${common[@]}" "${queues[@]}" "${consumer[@]}"
} > docs/control-quality.md.new
mv docs/control-quality.md.new docs/control-quality.md
