# Client-side and server-side apply. Sourced by run.

part_apply() {
    cat >"$work/web.yaml" <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: applied, labels: {app: applied}}
spec:
  replicas: 0
  selector: {matchLabels: {app: applied}}
  template:
    metadata: {labels: {app: applied}}
    spec:
      containers:
        - {name: main, image: "example/app:1", ports: [{containerPort: 80}]}
EOF
    client_side
    server_side
    dry_runs
    k delete deployment applied --ignore-not-found >/dev/null
}

client_side() {
    prints 'apply creates' 'deployment.apps/applied created' k apply -f "$work/web.yaml"
    prints 'apply again' 'deployment.apps/applied unchanged' k apply -f "$work/web.yaml"
    sed 's/app:1/app:2/' "$work/web.yaml" >"$work/web2.yaml"
    prints 'apply a change' 'deployment.apps/applied configured' k apply -f "$work/web2.yaml"
    prints 'applied image' example/app:2 k get deployment applied -o 'jsonpath={.spec.template.spec.containers[*].image}'
    sed '/labels: {app: applied}}$/s/labels: {app: applied}/labels: {app: applied, more: x}/' "$work/web.yaml" | sed 's/, ports: .*}\]/, env: [{name: A, value: b}]/' >"$work/web3.yaml"
    prints 'apply removes what it owned' 'deployment.apps/applied configured' k apply -f "$work/web3.yaml"
    prints 'ports are gone' '[{"name":"A","value":"b"}]' k get deployment applied -o 'jsonpath={.spec.template.spec.containers[0].ports}{.spec.template.spec.containers[0].env}'
    says 'last applied' 'example/app:1' k apply view-last-applied deployment/applied
    refuses 'diff tells' '^\+.*image: example/app:9$' sh -c "sed 's/app:1/app:9/' '$work/web3.yaml' | k diff -f -"
    prints 'no diff' '' k diff -f "$work/web3.yaml"
    prints 'delete by file' "deployment.apps \"applied\" deleted from $ns namespace" k delete -f "$work/web.yaml"
}

server_side() {
    prints 'server-side apply' 'deployment.apps/applied serverside-applied' k apply --server-side --field-manager alice -f "$work/web.yaml"
    refuses 'conflict' 'Apply failed with 1 conflict: conflict with "alice": \.spec\.template\.spec\.containers\[name="main"\]\.image$' \
        k apply --server-side --field-manager bob -f "$work/web2.yaml"
    prints 'still the old image' example/app:1 k get deployment applied -o 'jsonpath={.spec.template.spec.containers[*].image}'
    prints 'force conflicts' 'deployment.apps/applied serverside-applied' k apply --server-side --force-conflicts --field-manager bob -f "$work/web2.yaml"
    refuses 'the other side conflicts now' 'conflict with "bob": \.spec\.template\.spec\.containers\[name="main"\]\.image$' \
        k apply --server-side --field-manager alice -f "$work/web.yaml"
    prints 'managers' 'alice bob' sh -c "k get deployment applied --show-managed-fields -o json | jq -r '[.metadata.managedFields[] | select(.operation == \"Apply\") | .manager] | sort | join(\" \")'"
    prints 'scale takes replicas' 'deployment.apps/applied scaled' k scale deployment applied --replicas 1
    refuses 'apply conflicts with the scale' '\.spec\.replicas$' k apply --server-side --field-manager bob -f "$work/web2.yaml"
    prints 'scale precondition holds' 'deployment.apps/applied scaled' k scale deployment applied --current-replicas 1 --replicas 0
    refuses 'scale precondition fails' 'Expected replicas to be 5, was 0' k scale deployment applied --current-replicas 5 --replicas 1
}

dry_runs() {
    prints 'dry run of apply' 'deployment.apps/dry created (server dry run)' sh -c "sed 's/name: applied,/name: dry,/' '$work/web.yaml' | k apply --dry-run=server -f -"
    refuses 'dry run left nothing' 'deployments.apps "dry" not found' k get deployment dry
    prints 'dry run of create' 'configmap/dry created (server dry run)' k create configmap dry --dry-run=server
    refuses 'strict validation' 'strict decoding error: unknown field "spec.replcas"' sh -c "sed 's/replicas:/replcas:/' '$work/web.yaml' | k apply -f -"
    says 'validation switched off' 'deployment.apps/applied configured' sh -c "sed 's/replicas:/replcas:/' '$work/web.yaml' | k apply --validate=false -f -"
}
