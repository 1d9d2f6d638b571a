{{/* Names and labels that several manifests share. */}}
{{- define "switchyard.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}

{{- define "switchyard.selector" -}}
app.kubernetes.io/name: switchyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "switchyard.labels" -}}
{{ include "switchyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "switchyard.image" -}}
{{- if .Values.image.digest -}}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{- end -}}
{{- end -}}

{{- define "switchyard.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ .Values.serviceAccount.name | default (include "switchyard.name" .) }}
{{- else -}}{{ .Values.serviceAccount.name | default "default" }}{{- end -}}
{{- end -}}

{{/* Variables of gateways and of the migration job; secrets are files, so that no process listing shows them. */}}
{{- define "switchyard.environment" -}}
- { name: HOST, value: "0.0.0.0" }
- { name: PORT, value: "8787" }
- { name: SWITCHYARD_PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
- { name: SWITCHYARD_METRICS_PORT, value: {{ .Values.metrics.port | quote }} }
{{- range $name, $reference := .Values.secrets }}
- { name: {{ $name }}_FILE, value: "/run/secrets/switchyard/{{ $name }}" }
{{- end }}
{{- range $name, $value := .Values.environment }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- with .Values.extraEnvironment }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The keys that both containers have besides their variables: envFrom. */}}
{{- define "switchyard.environmentFrom" -}}
{{- with .Values.extraEnvironmentFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* switchyard.yaml, with the grace that the pod has for requests, unless the configuration names another. */}}
{{- define "switchyard.configuration" -}}
{{- $configuration := deepCopy (.Values.configuration | default dict) -}}
{{- $server := $configuration.server | default dict -}}
{{- if not (hasKey $server "drain_grace_ms") -}}
{{- $_ := set $server "drain_grace_ms" (mul .Values.drain.graceSeconds 1000) -}}
{{- end -}}
{{- toYaml (set $configuration "server" $server) -}}
{{- end -}}

{{/* Seconds that a pod has to end: the delay, the grace in force, and ten for the last commits. */}}
{{- define "switchyard.terminationSeconds" -}}
{{- $server := (include "switchyard.configuration" . | fromYaml).server -}}
{{- add .Values.drain.delaySeconds (ceil (divf $server.drain_grace_ms 1000)) 10 -}}
{{- end -}}

{{/* HTTPS where the configuration has a certificate of the gateway's own. */}}
{{- define "switchyard.scheme" -}}
{{- if dig "server" "tls" "" .Values.configuration }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "switchyard.volumeMounts" -}}
- { name: configuration, mountPath: /etc/switchyard, readOnly: true }
- { name: secrets, mountPath: /run/secrets/switchyard, readOnly: true }
- { name: data, mountPath: /data }
- { name: temporary, mountPath: /tmp }
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "switchyard.volumes" -}}
- name: configuration
  configMap: { name: {{ .configMap }} }
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $name, $reference := .root.Values.secrets }}
      - secret:
          name: {{ $reference.secretName }}
          items: [{ key: {{ $reference.key }}, path: {{ $name }} }]
      {{- end }}
- name: data
  emptyDir: {}
- name: temporary
  emptyDir: {}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "switchyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "switchyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}
