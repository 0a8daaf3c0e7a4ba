# Deployments that roll, scale and vanish. Needs controllers and nodes. Sourced by run.

part_workloads() {
    rollouts
    autoscaling
    dependents
}

rollouts() {
    prints 'create a deployment' 'deployment.apps/web created' k create deployment web --image example/web:1 --replicas 2
    says 'rollout status' '^deployment "web" successfully rolled out$' k rollout status deployment/web --timeout 80s
    prints 'wait until available' 'deployment.apps/web condition met' k wait --for condition=Available deployment/web --timeout 60s
    prints 'get deployment' $'NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    2/2     2            2           <age>' k get deployment web
    prints 'wait for the pods' 2 sh -c 'k wait --for condition=Ready pods -l app=web --timeout 60s | grep -c "condition met"'
    says 'pods as printed' '^web-[a-z0-9]+-[a-z0-9]{5} +1/1 +Running +0 +[0-9]+' k get pods -l app=web
    prints 'scale' 'deployment.apps/web scaled' k scale deployment web --replicas 3
    says 'rollout status after scaling' 'successfully rolled out' k rollout status deployment/web --timeout 80s
    prints 'set an image' 'deployment.apps/web image updated' k set image deployment/web web=example/web:2
    says 'rollout status of the new image' 'successfully rolled out' k rollout status deployment/web --timeout 80s
    says 'rollout history' '^2 +<none>$' k rollout history deployment/web
    prints 'rollout undo' 'deployment.apps/web rolled back' k rollout undo deployment/web
    says 'rollout status after undo' 'successfully rolled out' k rollout status deployment/web --timeout 80s
    prints 'the image is back' example/web:1 k get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'
    prints 'rollout restart' 'deployment.apps/web restarted' k rollout restart deployment/web
    says 'rollout status after restart' 'successfully rolled out' k rollout status deployment/web --timeout 80s
    says 'describe deployment' '^Replicas: +3 desired \| 3 updated \| 3 total \| 3 available \| 0 unavailable$' k describe deployment web
    says 'events of it' 'ScalingReplicaSet' k get events --field-selector involvedObject.name=web
    prints 'expose' 'service/web exposed' k expose deployment web --port 80
    eventually 'endpoints' '^3$' sh -c "k get endpoints web -o json | jq '[.subsets[]?.addresses[]?] | length'"
}

autoscaling() {
    k get hpa -w >"$work/hpas.txt" 2>&1 &
    local pid=$!
    prints 'autoscale' 'horizontalpodautoscaler.autoscaling/web autoscaled' k autoscale deployment web --min 2 --max 5 --cpu 80%
    says 'get the hpa' '^web +Deployment/web +cpu: .*/80% +2 +5 +[0-9]+ +[0-9]+s$' k get hpa web
    eventually 'get hpa -w' '^web +Deployment/web +cpu: .*/80% +2 +5 +' cat "$work/hpas.txt"
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    says 'describe the hpa' '^Reference: +Deployment/web$' k describe hpa web
    says 'delete the hpa' '^horizontalpodautoscaler.autoscaling "web" deleted' k delete hpa web
}

dependents() {
    says 'delete the deployment' '^deployment.apps "web" deleted' k delete deployment web --timeout 60s
    eventually 'its pods go with it' '^0$' sh -c 'k get pods -l app=web -o name | wc -l'
    eventually 'its replica sets go with it' '^0$' sh -c 'k get replicasets -l app=web -o name | wc -l'
    says 'create another deployment' created k create deployment kept --image example/kept:1
    says 'rollout status of the other' 'successfully rolled out' k rollout status deployment/kept --timeout 60s
    says 'delete without dependents' '^deployment.apps "kept" deleted' k delete deployment kept --cascade=orphan
    eventually 'its replica set stays' '^1$' sh -c 'k get replicasets -l app=kept -o name | wc -l'
    says 'delete in the foreground' '^replicaset.apps .* deleted' k delete replicasets -l app=kept --cascade=foreground --timeout 60s
    eventually 'nothing stays' '^0$' sh -c 'k get pods,replicasets -l app=kept -o name | wc -l'
    make_namespace "$ns-gone"
    says 'create in a namespace to delete' created k -n "$ns-gone" create configmap x
    says 'delete a namespace' "^namespace \"$ns-gone\" deleted" k delete namespace "$ns-gone" --timeout 60s
}
