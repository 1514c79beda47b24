import * as z from 'zod';

/** The fields of Kubernetes' API that the manifests use, from its reference; a field that is not here is an error. */

const name = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
const portName = z.string().regex(/^[a-z0-9-]{1,15}$/);
const port = z.int().min(1).max(65_535);
const seconds = z.int().min(0);
const strings = z.record(z.string(), z.string());
const metadata = z.strictObject({
  name,
  namespace: name.optional(),
  labels: strings.optional(),
  annotations: strings.optional(),
});
const quantity = z.string().regex(/^\d+(?:\.\d+)?(?:m|k|M|G|T|Ki|Mi|Gi|Ti)?$/);
const quantities = z.strictObject({
  cpu: quantity.optional(),
  memory: quantity.optional(),
  'nvidia.com/gpu': quantity.optional(),
});
const selector = z.strictObject({ matchLabels: strings });

const secretKey = z.strictObject({ name, key: z.string().min(1), optional: z.boolean().optional() });
const variable = z.union([
  z.strictObject({ name: z.string().regex(/^[A-Z][A-Z0-9_]*$/), value: z.string() }),
  z.strictObject({
    name: z.string().regex(/^[A-Z][A-Z0-9_]*$/),
    valueFrom: z.strictObject({ secretKeyRef: secretKey }),
  }),
]);

const probe = z.strictObject({
  httpGet: z.strictObject({ path: z.string().startsWith('/'), port: z.union([port, portName]) }),
  initialDelaySeconds: seconds.optional(),
  periodSeconds: seconds.min(1).optional(),
  timeoutSeconds: seconds.min(1).optional(),
  failureThreshold: z.int().min(1).optional(),
});

const container = z.strictObject({
  name,
  image: z.string().min(1),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  env: z.array(variable).optional(),
  ports: z.array(z.strictObject({ name: portName, containerPort: port })).optional(),
  startupProbe: probe.optional(),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
  resources: z.strictObject({ requests: quantities, limits: quantities }),
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.boolean(),
    readOnlyRootFilesystem: z.boolean(),
    capabilities: z.strictObject({ drop: z.array(z.string()) }),
  }),
  volumeMounts: z
    .array(z.strictObject({ name, mountPath: z.string().startsWith('/'), readOnly: z.boolean().optional() }))
    .optional(),
});
export type PodContainer = z.infer<typeof container>;

const podSpec = z.strictObject({
  automountServiceAccountToken: z.boolean(),
  terminationGracePeriodSeconds: seconds,
  securityContext: z.strictObject({
    runAsNonRoot: z.boolean(),
    runAsUser: z.int(),
    runAsGroup: z.int(),
    fsGroup: z.int(),
    seccompProfile: z.strictObject({ type: z.enum(['RuntimeDefault', 'Unconfined', 'Localhost']) }),
  }),
  initContainers: z.array(container.extend({ restartPolicy: z.literal('Always').optional() })),
  containers: z.array(container).min(1),
  tolerations: z
    .array(
      z.strictObject({
        key: z.string(),
        operator: z.enum(['Exists', 'Equal']),
        effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
      }),
    )
    .optional(),
  volumes: z.array(z.strictObject({ name, emptyDir: z.strictObject({ sizeLimit: quantity.optional() }) })),
});

export const deployment = z.strictObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata,
  spec: z.strictObject({
    replicas: z.int().optional(),
    selector,
    strategy: z.strictObject({
      type: z.literal('RollingUpdate'),
      rollingUpdate: z.strictObject({ maxSurge: z.int(), maxUnavailable: z.int() }),
    }),
    template: z.strictObject({ metadata: metadata.omit({ name: true }), spec: podSpec }),
  }),
});
export type Deployment = z.infer<typeof deployment>;

export const service = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Service'),
  metadata,
  spec: z.strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
    selector: strings,
    ports: z.array(z.strictObject({ name: portName, port, targetPort: z.union([port, portName]) })).min(1),
  }),
});

const disruptionBudget = z.strictObject({
  apiVersion: z.literal('policy/v1'),
  kind: z.literal('PodDisruptionBudget'),
  metadata,
  spec: z.strictObject({ maxUnavailable: z.int().min(0), selector }),
});

const scaleTargetRef = z.strictObject({ apiVersion: z.string(), kind: z.string(), name });
const scalingRules = z.strictObject({
  stabilizationWindowSeconds: seconds.max(3600).optional(),
  policies: z
    .array(
      z.strictObject({
        type: z.enum(['Pods', 'Percent']),
        value: z.int().min(1),
        periodSeconds: seconds.min(1).max(1800),
      }),
    )
    .optional(),
});

const autoscaler = z.strictObject({
  apiVersion: z.literal('autoscaling/v2'),
  kind: z.literal('HorizontalPodAutoscaler'),
  metadata,
  spec: z.strictObject({
    scaleTargetRef,
    minReplicas: z.int().min(1),
    maxReplicas: z.int().min(1),
    metrics: z.array(
      z.strictObject({
        type: z.literal('Pods'),
        pods: z.strictObject({
          metric: z.strictObject({ name: z.string() }),
          target: z.strictObject({ type: z.literal('AverageValue'), averageValue: quantity }),
        }),
      }),
    ),
    behavior: z.strictObject({ scaleUp: scalingRules, scaleDown: scalingRules }),
  }),
});

const scaledObject = z.strictObject({
  apiVersion: z.literal('keda.sh/v1alpha1'),
  kind: z.literal('ScaledObject'),
  metadata,
  spec: z.strictObject({
    scaleTargetRef,
    minReplicaCount: z.int().min(0),
    maxReplicaCount: z.int().min(1),
    pollingInterval: seconds.min(1),
    cooldownPeriod: seconds,
    triggers: z.array(
      z.strictObject({
        type: z.literal('prometheus'),
        metadata: z.strictObject({ serverAddress: z.url(), query: z.string(), threshold: quantity }),
      }),
    ),
  }),
});

export const manifest = z.discriminatedUnion('kind', [
  deployment,
  service,
  disruptionBudget,
  autoscaler,
  scaledObject,
]);
