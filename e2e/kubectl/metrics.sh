# The metrics APIs as kubectl uses them. Needs running pods somewhere. Sourced by run.

part_metrics() {
    eventually 'top nodes' '^[^ ]+ +[0-9]+m +[0-9]+% +[0-9]+Mi +[0-9]+%' k top nodes
    eventually 'top pods' '^[^ ]+ +[^ ]+ +[0-9]+m +[0-9]+Mi' k top pods -A
    says 'top pods by container' '^NAMESPACE +POD +NAME +CPU\(cores\) +MEMORY\(bytes\)' k top pods -A --containers
    says 'metrics.k8s.io' '"kind":"PodMetricsList"' k get --raw /apis/metrics.k8s.io/v1beta1/pods
    says 'custom.metrics.k8s.io' '"groupVersion":"custom.metrics.k8s.io/v1beta2"' k get --raw /apis/custom.metrics.k8s.io/v1beta2
    says 'external.metrics.k8s.io' '"groupVersion":"external.metrics.k8s.io/v1beta1"' k get --raw /apis/external.metrics.k8s.io/v1beta1
    says 'metrics are discovered' '^pods +metrics.k8s.io/v1beta1 +true +PodMetrics$' k api-resources --api-group metrics.k8s.io
    says 'their api service' '^v1beta1.metrics.k8s.io .* True +' k get apiservice v1beta1.metrics.k8s.io
}
