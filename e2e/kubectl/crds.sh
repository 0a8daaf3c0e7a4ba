# Custom resources. Sourced by run.

part_crds() {
    cat >"$work/crd.yaml" <<'EOF'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.kubectl.podscale.dev}
spec:
  group: kubectl.podscale.dev
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, shortNames: [gg], categories: [all]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
      additionalPrinterColumns:
        - {name: Limit, type: integer, jsonPath: .spec.limit}
        - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
        - {name: Mode, type: string, jsonPath: .spec.mode, priority: 1}
      schema:
        openAPIV3Schema:
          description: A gauge measures.
          type: object
          required: [spec]
          properties:
            spec:
              description: What to measure.
              type: object
              required: [limit]
              properties:
                limit: {type: integer, minimum: 1, description: Where it ends.}
                mode: {type: string, enum: [fast, slow], default: slow}
                replicas: {type: integer, format: int32, default: 1}
            status:
              type: object
              properties:
                replicas: {type: integer}
                conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}
EOF
    k delete crd gauges.kubectl.podscale.dev --ignore-not-found >/dev/null 2>&1
    prints 'create a crd' 'customresourcedefinition.apiextensions.k8s.io/gauges.kubectl.podscale.dev created' k create -f "$work/crd.yaml"
    prints 'wait until established' 'customresourcedefinition.apiextensions.k8s.io/gauges.kubectl.podscale.dev condition met' \
        k wait --for condition=Established crd/gauges.kubectl.podscale.dev --timeout 30s
    eventually 'it is discovered' '^gauges +gg +kubectl.podscale.dev/v1 +true +Gauge$' k api-resources --api-group kubectl.podscale.dev
    eventually 'explain knows it' '^FIELD: limit <integer>$' k explain gauge.spec.limit
    says 'explain describes it' 'Where it ends\.' k explain gauge.spec.limit
    prints 'create an object' 'gauge.kubectl.podscale.dev/one created' sh -c 'echo "{apiVersion: kubectl.podscale.dev/v1, kind: Gauge, metadata: {name: one}, spec: {limit: 5}}" | k apply -f -'
    prints 'its columns' $'NAME   LIMIT   READY\none    5' k get gg
    prints 'its wide columns' $'NAME   LIMIT   READY   MODE\none    5               slow' k get gauges -o wide
    refuses 'schema violation' '^The Gauge "two" is invalid: spec.limit: Invalid value: 0: spec.limit in body should be greater than or equal to 1$' \
        sh -c 'echo "{apiVersion: kubectl.podscale.dev/v1, kind: Gauge, metadata: {name: two}, spec: {limit: 0}}" | k create -f -'
    refuses 'unsupported value' 'spec.mode: Unsupported value: "odd": supported values: "fast", "slow"' k patch gauge one --type merge -p '{"spec":{"mode":"odd"}}'
    refuses 'unknown field of it' 'unknown field "spec.limmit"' \
        sh -c 'echo "{apiVersion: kubectl.podscale.dev/v1, kind: Gauge, metadata: {name: two}, spec: {limit: 3, limmit: 0}}" | k create -f -'
    prints 'scale it' 'gauge.kubectl.podscale.dev/one scaled' k scale gauge one --replicas 4
    prints 'patch its status' 'gauge.kubectl.podscale.dev/one patched' k patch gauge one --subresource status --type merge -p '{"status":{"replicas":4,"conditions":[{"type":"Ready","status":"True"}]}}'
    prints 'columns after that' $'NAME   LIMIT   READY\none    5       True' k get gauges
    prints 'wait for its condition' 'gauge.kubectl.podscale.dev/one condition met' k wait --for condition=Ready gauge/one --timeout 10s
    says 'autoscale it' 'horizontalpodautoscaler.autoscaling/one autoscaled' k autoscale gauge one --min 1 --max 3 --cpu 50%
    says 'describe it' '^  Limit: +5$' k describe gauge one
    says 'delete the crd' 'deleted' k delete crd gauges.kubectl.podscale.dev
    eventually 'it is served no more' '^gone$' sh -c 'k get --raw /apis/kubectl.podscale.dev/v1/gauges 2>/dev/null || echo gone'
}
