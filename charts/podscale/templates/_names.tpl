{{- define "podscale.labels" -}}
app.kubernetes.io/name: podscale
app.kubernetes.io/instance: podscale
{{- end }}
