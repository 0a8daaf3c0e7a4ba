# HPAs as kubectl prints them, column for column as against a real API server. Sourced by run.

part_printing() {
    local name
    k get namespace printed >/dev/null 2>&1 || make_namespace printed
    k -n printed delete hpa --all >/dev/null
    if ! "$golden/load" k printed "$golden/hpas.yaml" >"$work/load.log" 2>&1; then
        not_ok 'load the autoscalers' "$(cat "$work/load.log")"
        return
    fi
    prints 'get hpa' "$(cat "$golden/get.txt")" k -n printed get hpa
    prints 'get hpa -o wide' "$(cat "$golden/get-wide.txt")" k -n printed get hpa -o wide
    prints 'get hpa by version 1' "$(cat "$golden/get.txt")" k -n printed get horizontalpodautoscalers.v1.autoscaling
    prints 'describe hpa' "$(cat "$golden/describe.txt")" k -n printed describe hpa
    prints 'get hpas without headers' "$(sed 1d "$golden/get.txt" | awk '{ print $1 }')" sh -c "k -n printed get hpa --no-headers | awk '{ print \$1 }'"
    prints 'get hpa -o name' horizontalpodautoscaler.autoscaling/cpu k -n printed get hpa cpu -o name
    prints 'get hpa by label' cpu k -n printed get hpa -l shown=yes -o 'jsonpath={.items[*].metadata.name}'
    for name in cpu many external-average old-annotated; do
        prints "get hpa $name as JSON, version 1" "$(jq -S --arg name "$name" 'select(.path == "/apis/autoscaling/v1/namespaces/printed/horizontalpodautoscalers")
            | .objects.items[] | select(.metadata.name == $name) | {metadata: {name: .metadata.name, annotations: .metadata.annotations}, spec, status}' "$golden/tables.jsonl")" \
            sh -c "k -n printed get horizontalpodautoscalers.v1.autoscaling $name -o json | jq -S '{metadata: {name: .metadata.name, annotations: .metadata.annotations}, spec, status}'"
    done
    k -n printed delete hpa --all >/dev/null
}
