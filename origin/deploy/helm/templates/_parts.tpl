{{- define "origin.name" -}}{{ .Release.Name }}-origin{{- end }}
{{- define "tunnel.name" -}}{{ .Release.Name }}-tunnel{{- end }}
{{- define "image" -}}{{ .Values.image.repository }}:{{ .Values.image.tag }}{{- end }}

{{- define "pod.security" -}}
automountServiceAccountToken: false
# The variables of the Service would be CONTINUO_ORIGIN_PORT=tcp://… and others.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "container.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}
