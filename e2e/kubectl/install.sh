# Installing Podscale itself, with kubectl and with helm. Sourced by run.

part_install() {
    find_install
    local manifests=$work/install.yaml own_ns=podscale

    "$podscale" install >"$manifests"
    says 'the printed manifests are applied, validated by the client' \
        '^deployment.apps/podscale created$' k apply -n "$own_ns" --validate=true -f "$manifests"
    says 'applied again, nothing changes' '^deployment.apps/podscale unchanged$' k apply -n "$own_ns" -f "$manifests"
    prints 'and nothing differs' '' k diff -n "$own_ns" -f "$manifests"
    says 'the server applies them as well' '^deployment.apps/podscale serverside-applied$' \
        k apply -n "$own_ns" --server-side --force-conflicts -f "$manifests"
    # Whoever finds its template changed makes one ReplicaSet after the other.
    eventually 'the Deployment makes one ReplicaSet' '^1$' sh -c "k get rs -n $own_ns -o name | wc -l"
    says 'the budget is printed' '^podscale +N/A +1 +[0-9]+ ' k get pdb -n "$own_ns"
    # The namespace goes first and takes with it what is in it.
    says 'all of it is deleted' '^namespace "podscale" deleted$' \
        k delete -n "$own_ns" --ignore-not-found --timeout=60s -f "$manifests"
    refuses 'the namespace is gone' 'NotFound' k get namespace "$own_ns"

    if [ -n "$helm" ]; then
        install_with_helm
    elif [ "${CI:-}" = true ]; then
        not_ok 'helm is installed' 'there is no helm on PATH, and HELM names none'
    else
        printf '\n!! LEFT OUT: helm is not installed; HELM can name one\n\n'
    fi
}

install_with_helm() {
    local chart=$here/../../charts/podscale helm_ns=$ns-helm
    local filter='"\(.spec.replicas) \(.spec.template.spec.containers[0].args | map(select(test("sync-period"))))"'
    local deployed="k get deployment podscale -n $helm_ns -o json | jq -r '$filter'"
    write_h "$helm_ns"
    says 'helm installs the chart' '^STATUS: deployed$' \
        h install podscale "$chart" --create-namespace --set replicas=1
    says 'helm lists the release' 'podscale.*deployed' h list
    says 'helm upgrades it' '^REVISION: 2$' \
        h upgrade podscale "$chart" --set replicas=2 --set 'arguments[0]=--sync-period=5s'
    says 'the upgrade reached the Deployment' '^2 \["--sync-period=5s"\]$' sh -c "$deployed"
    says 'helm rolls it back' 'Rollback was a success' h rollback podscale 1
    says 'the rollback reached the Deployment' '^1 \[\]$' sh -c "$deployed"
    says 'helm knows the history' '^3.*deployed.*Rollback to 1' h history podscale
    says 'helm uninstalls it and waits' '^release "podscale" uninstalled$' \
        h uninstall podscale --wait --timeout 60s
    refuses 'nothing of it is left' 'NotFound' k get deployment podscale -n "$helm_ns"
    k delete namespace "$helm_ns" --wait=false >/dev/null
}

find_install() {
    local target
    target=${CARGO_TARGET_DIR:-$(cd "$here/../.." && pwd)/target}
    podscale=${PODSCALE:-$target/debug/podscale}
    [ -x "$podscale" ] || stop 3 "no podscale at $podscale; build it, or name one with PODSCALE"
    helm=${HELM:-$(command -v helm || true)}
}

# h is helm in a namespace of its own; its caches are this run's.
write_h() {
    cat >"$work/h" <<SCRIPT
#!/bin/sh
export HELM_CACHE_HOME="$work/helm" HELM_CONFIG_HOME="$work/helm" HELM_DATA_HOME="$work/helm"
exec "$helm" --namespace "$1" "\$@"
SCRIPT
    chmod +x "$work/h"
}
