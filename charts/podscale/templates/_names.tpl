{{- define "podscale.labels" -}}
app.kubernetes.io/name: podscale
app.kubernetes.io/instance: podscale
{{- end }}

{{/* Not empty where kubelets are read. */}}
{{- define "podscale.readsKubelets" -}}
{{- $served := and (has "resource" .Values.metrics.serve) (ne .Values.metrics.resource "prometheus") }}
{{- if or (eq .Values.metrics.resource "kubelet") $served }}yes{{ end }}
{{- end }}

{{/* Not empty where anything is served for which it matters who asks. */}}
{{- define "podscale.isAskedByUsers" -}}
{{- if or .Values.metrics.serve .Values.singlecloud.enabled }}yes{{ end }}
{{- end }}

{{/* Not empty where anything is served over TLS. */}}
{{- define "podscale.serves" -}}
{{- if or (include "podscale.isAskedByUsers" .) .Values.webhook.enabled }}yes{{ end }}
{{- end }}

{{/* The names of the APIServices, a line each. */}}
{{- define "podscale.apiServices" -}}
{{- $names := list }}
{{- range .Values.metrics.serve }}
{{- if eq . "resource" }}{{ $names = append $names "v1beta1.metrics.k8s.io" }}{{ end }}
{{- if eq . "custom" }}{{ $names = concat $names (list "v1beta2.custom.metrics.k8s.io" "v1beta1.custom.metrics.k8s.io") }}{{ end }}
{{- if eq . "external" }}{{ $names = append $names "v1beta1.external.metrics.k8s.io" }}{{ end }}
{{- end }}
{{- join "\n" $names }}
{{- end }}
