# Plain objects through their life. Sourced by run.

part_objects() {
    discovery
    life_of_a_configmap
    watches
    errors
    deletion
}

discovery() {
    says 'create namespace' "^namespace/$ns-other created$" k create namespace "$ns-other"
    says 'delete namespace' "^namespace \"$ns-other\" deleted" k delete namespace "$ns-other" --wait=false
    says 'version' '^Server Version: v1\.' k version
    says 'api-versions' '^autoscaling/v2$' k api-versions
    says 'api-resources' '^horizontalpodautoscalers +hpa +autoscaling/v2 +true +HorizontalPodAutoscaler$' k api-resources
    says 'api-resources by group' '^deployments +deploy +apps/v1 +true +Deployment +create,delete,deletecollection,get,list,patch,update,watch +all$' k api-resources --api-group apps -o wide
    says 'explain' '^FIELD: maxReplicas <integer>$' k explain hpa.spec.maxReplicas
    says 'explain recursively' '^ +averageUtilization[[:space:]]<integer>$' k explain hpa.spec.metrics --recursive
    says 'explain a deployment' '^  strategy[[:space:]]<DeploymentStrategy>$' k explain deployment.spec
    says 'get --raw readyz' '^ok$' k get --raw /readyz
    says 'get --raw list' '"kind":"NamespaceList"' k get --raw /api/v1/namespaces
}

life_of_a_configmap() {
    prints 'create' 'configmap/settings created' k create configmap settings --from-literal colour=red
    prints 'get one value' red k get configmap settings -o 'jsonpath={.data.colour}'
    prints 'get as a table' $'NAME       DATA   AGE\nsettings   1      <age>' k get configmap settings
    prints 'label' 'configmap/settings labeled' k label configmap settings team=a
    prints 'get with label columns' $'NAME       DATA   AGE   TEAM\nsettings   1      <age>    a' sh -c "k get configmap settings -L team | sed -E 's/[0-9]+s /<age> /'"
    prints 'annotate' 'configmap/settings annotated' k annotate configmap settings note=x
    prints 'patch by merge' 'configmap/settings patched' k patch configmap settings --type merge -p '{"data":{"size":"5"}}'
    prints 'patch strategically' 'configmap/settings patched' k patch configmap settings -p '{"data":{"size":"6"}}'
    prints 'patch by operations' 'configmap/settings patched' k patch configmap settings --type json -p '[{"op":"remove","path":"/data/size"}]'
    prints 'patch without change' 'configmap/settings patched (no change)' k patch configmap settings --type merge -p '{"data":{"colour":"red"}}'
    prints 'edit' 'configmap/settings edited' env 'KUBE_EDITOR=sed -i s/red/blue/' k edit configmap settings
    prints 'edited value' '{"colour":"blue"}' k get configmap settings -o 'jsonpath={.data}'
    prints 'replace' 'configmap/settings replaced' sh -c 'k get configmap settings -o yaml | sed s/blue/green/ | k replace -f -'
    prints 'replaced value' green k get configmap settings -o 'jsonpath={.data.colour}'
    says 'describe' '^green$' k describe configmap settings
    prints 'wait for a value' 'configmap/settings condition met' k wait configmap/settings --for 'jsonpath={.data.colour}=green' --timeout 10s
    prints 'create from a file with a name to generate' 1 sh -c 'echo "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: made-}}" | k create -f - -o name | grep -cE "^configmap/made-[a-z0-9]{5}$"'
    prints 'pages' 12 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do k create configmap page-$i >/dev/null; done; k get configmaps --chunk-size 5 -o name | grep -c page-'
    prints 'select by field' configmap/settings k get configmaps --field-selector metadata.name=settings -o name
    prints 'select by label' configmap/settings k get configmaps -l 'team in (a,b),!none' -o name
}

watches() {
    k get configmaps --field-selector metadata.name=watched -w -o 'jsonpath={.data.n}{"\n"}' >"$work/watch.txt" 2>&1 &
    local pid=$!
    sleep 2
    says 'create while watched' created k create configmap watched --from-literal n=1
    says 'change while watched' patched k patch configmap watched --type merge -p '{"data":{"n":"2"}}'
    says 'change again while watched' patched k patch configmap watched --type merge -p '{"data":{"n":"3"}}'
    eventually 'get -w shows each change' '^1 2 3$' sh -c "tr '\n' ' ' <'$work/watch.txt' | sed 's/ $//'"
    kill "$pid"
    wait "$pid" 2>/dev/null || true
}

errors() {
    refuses 'get what is not there' '^Error from server \(NotFound\): configmaps "absent" not found$' k get configmap absent
    refuses 'create what exists' 'configmaps "settings" already exists$' k create configmap settings
    refuses 'unknown type' "^error: the server doesn't have a resource type \"nothings\"$" k get nothings
    refuses 'missing namespace' 'namespaces "absent-ns" not found$' k -n absent-ns create configmap x
    refuses 'unknown field' 'unknown field "spec.template.spec.containers\[0\].imagee"' \
        sh -c "k create deployment x --image example/x --dry-run=client -o json | jq '.spec.template.spec.containers[0].imagee = \"y\"' | k create -f -"
    refuses 'invalid hpa' '^The HorizontalPodAutoscaler "x" is invalid: spec.maxReplicas: Invalid value: 0: must be greater than (or equal to )?[01]$|^\* spec.maxReplicas: ' \
        sh -c 'echo "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {maxReplicas: 0, minReplicas: 2, scaleTargetRef: {kind: Deployment, name: x}}}" | k create -f -'
    refuses 'stale version' '^Error from server \(Conflict\): error when replacing ".*": Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again$' \
        sh -c "k get configmap settings -o json >'$work/stale.json'; k label configmap settings again=1 >/dev/null; k replace -f '$work/stale.json'"
}

deletion() {
    prints 'delete with dry run' "configmap \"page-1\" deleted from $ns namespace (server dry run)" k delete configmap page-1 --dry-run=server
    says 'delete' '^configmap "page-1" deleted' k delete configmap page-1
    says 'delete by label' '^configmap "settings" deleted' k delete configmaps -l team=a
    prints 'delete ignores what is gone' '' k delete configmap page-1 --ignore-not-found
    says 'create with a finalizer' created sh -c 'echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [podscale.dev/hold]}}" | k create -f -'
    says 'delete what a finalizer holds' deleted k delete configmap held --wait=false
    says 'a finalizer holds' '^configmap/held$' k get configmap held -o name
    (sleep 1; k patch configmap held --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1) &
    says 'wait for deletion' '^configmap/held condition met$' k wait --for=delete configmap/held --timeout 30s
    wait $! || true
    says 'delete all' '^configmap "page-2" deleted' k delete configmaps --all
}
