import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { IScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import type { IDeployment } from 'kubernetes-models/apps/v1';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';
import type { IService } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig, variables } from '../../../origin/config/config.ts';
import { createMetrics } from '../../../origin/http/metrics.ts';
import { hasHelm, render, validated } from './manifests.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const MODEL = { pull: 'onnx-community/Qwen3-0.6B-ONNX', variant: 'q4f16', name: 'qwen3-0.6b' };
const SETTINGS = {
  defaults: {},
  card: { gpu: true, model: MODEL, 'autoscaling.kind': 'keda', env: { CONTINUO_CONTEXT: '8192' } },
};
type Setting = keyof typeof SETTINGS;

/** Every field as present; a test fails where it uses an absent one. */
type Present<T> = T extends object ? { [K in keyof T]-?: Present<NonNullable<T[K]>> } : T;
type Container = Present<IDeployment>['spec']['template']['spec']['containers'][number];

function chart(setting: Setting) {
  const all = render(SETTINGS[setting]);
  const find = <T>(kind: string, part = 'origin') =>
    all.find((one) => one.kind === kind && one.metadata.name === `continuo-${part}`) as
      | Present<T>
      | undefined;
  const deployment = find<IDeployment>('Deployment')!;
  const tunnel = find<IDeployment>('Deployment', 'tunnel')!;
  const pod = deployment.spec.template.spec;
  const origin = pod.containers[0]!;
  const containers = [...(pod.initContainers ?? []), ...pod.containers];
  return { all, find, deployment, tunnel, pod, containers, origin };
}

const probesOf = ({ startupProbe, readinessProbe, livenessProbe }: Container) =>
  [startupProbe, readinessProbe, livenessProbe].filter((probe) => probe !== undefined);
const namesOf = ({ env = [] }: Pick<Container, 'env'>) => env.map(({ name }) => name);

if (!hasHelm) test.skip('the chart: helm is not installed', () => {});

describe.each(hasHelm ? (Object.keys(SETTINGS) as Setting[]) : [])('the chart with %s', (setting) => {
  const { all, find, deployment, tunnel, pod, containers, origin } = chart(setting);

  test('holds origin and tunnel, each with a disruption budget, a Service, a scaler and a policy', () => {
    const kinds = all.map(({ kind }) => kind.replace(/^(?:HorizontalPodAutoscaler|ScaledObject)$/, 'scaler'));
    expect(kinds.toSorted()).toEqual([
      'Deployment',
      'Deployment',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'PodDisruptionBudget',
      'Service',
      'scaler',
    ]);
  });

  test('selectors match the labels of the pods', () => {
    const budget = find<IPodDisruptionBudget>('PodDisruptionBudget')!;
    const service = find<IService>('Service')!;
    const selectors = [
      deployment.spec.selector.matchLabels,
      budget.spec.selector.matchLabels,
      service.spec.selector,
    ];
    for (const selector of selectors) {
      expect(Object.keys(selector)).not.toEqual([]);
      expect(deployment.spec.template.metadata.labels).toMatchObject(selector);
    }
  });

  test('probes ask the health route, and probes and the Service name ports on which containers listen', () => {
    for (const container of containers)
      for (const { httpGet } of probesOf(container))
        expect(container.ports.map((port) => port.name)).toContain(httpGet.port);
    expect(probesOf(origin).map(({ httpGet }) => httpGet.path)).toEqual(['/health', '/health', '/health']);
    expect(readFileSync(path.join(ROOT, 'origin/http/server.ts'), 'utf8')).toContain("'/health'");
    const { port } = readConfig({ CONTINUO_ORIGIN_SECRET: 'only for the port, at least 32 bytes' });
    const metricsPort = Number(origin.env.find(({ name }) => name === 'CONTINUO_METRICS_PORT')?.value);
    expect(origin.ports).toEqual([
      { name: 'http', containerPort: port },
      { name: 'metrics', containerPort: metricsPort },
    ]);
    expect(find<IService>('Service')!.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
  });

  test('the origin accepts its variables, takes the slots that fit, and drains within the grace period', () => {
    expect(namesOf(origin).filter((variable) => !(variable in variables.shape))).toEqual([]);
    const values = origin.env.map(({ name, value }) => [
      name,
      value ?? 'from a secret of 32 characters or more',
    ]);
    const { drainMs, model } = readConfig(Object.fromEntries(values));
    expect(model.engine.slots).toBe('auto');
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drainMs / 1000 + 5);
  });

  test('secrets are references', () => {
    const variables = containers.flatMap(({ env = [] }) => env);
    const secrets = variables.filter((variable) => /SECRET|TOKEN|KEY/.test(variable.name));
    expect(secrets.map(({ name }) => name)).toContain('CONTINUO_ORIGIN_SECRET');
    for (const secret of secrets) expect(secret).toHaveProperty('valueFrom.secretKeyRef');
  });

  test('no container runs as root, gains rights, writes to its image or uses unlimited memory', () => {
    for (const { spec } of [deployment.spec.template, tunnel.spec.template]) {
      const seccompProfile = { type: 'RuntimeDefault' };
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, seccompProfile });
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(spec.enableServiceLinks).toBe(false);
    }
    const rights = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
    for (const { securityContext, resources } of [...containers, ...tunnel.spec.template.spec.containers]) {
      expect(securityContext).toEqual({ ...rights, readOnlyRootFilesystem: true });
      expect(Object.keys(resources.limits)).toContain('memory');
    }
  });

  test('every mount has a volume and every volume a mount', () => {
    const mounted = containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map((mount) => mount.name));
    expect([...new Set(mounted)].toSorted()).toEqual(pod.volumes.map((volume) => volume.name).toSorted());
  });

  test('images have a tag, and programs in commands exist', () => {
    for (const { image, command = [] } of containers) {
      expect(image).toMatch(/^[\w./-]+:[\w.-]+$/);
      for (const word of command)
        if (word.endsWith('.ts')) expect(existsSync(path.join(ROOT, word))).toBe(true);
    }
    expect(origin.image).toMatch(/^registry\.example\/continuo-origin/);
  });

  test('the tunnel leads to the Service, and only it and scrapers of metrics reach the origins', () => {
    const [cloudflared] = tunnel.spec.template.spec.containers;
    expect(namesOf(cloudflared!)).toEqual(['TUNNEL_TOKEN']);
    const { spec } = find<INetworkPolicy>('NetworkPolicy')!;
    expect(spec.podSelector.matchLabels).toEqual(deployment.spec.selector.matchLabels);
    const [requests, metrics] = spec.ingress;
    expect(requests!.from).toEqual([{ podSelector: { matchLabels: tunnel.spec.template.metadata.labels } }]);
    expect([...requests!.ports, ...metrics!.ports].map(({ port }) => port)).toEqual(['http', 'metrics']);
  });

  test('the scaler scales the Deployment by the length of the waiting queue', async () => {
    const autoscaler = find<IHorizontalPodAutoscaler>('HorizontalPodAutoscaler');
    const scaledObject = find<IScaledObject>('ScaledObject');
    const { apiVersion, kind, metadata } = deployment;
    const target = (autoscaler ?? scaledObject)!.spec.scaleTargetRef;
    expect(target).toEqual({ apiVersion, kind, name: metadata.name });
    expect(deployment.spec.replicas).toBe(undefined);
    const health = () => ({ status: 'ready' as const, models: [], running: 0, waiting: 0 });
    const { registry } = createMetrics({ health, engines: () => [] });
    const waiting = 'continuo_origin_waiting_sequences';
    expect((await registry.getMetricsAsJSON()).map((metric) => metric.name)).toContain(waiting);
    if (autoscaler) expect(autoscaler.spec.metrics[0]?.pods.metric.name).toBe(waiting);
    const trigger = {
      serverAddress: expect.any(String),
      query: `sum(${waiting}{namespace="continuo",pod=~"continuo-origin-.+"})`,
      threshold: expect.any(String),
    };
    if (scaledObject) expect(scaledObject.spec.triggers[0]?.metadata).toEqual(trigger);
  });
});

test.runIf(hasHelm)('a scaler with more replicas at least than at most is refused', () => {
  const turned = { 'autoscaling.minReplicas': 5, 'autoscaling.maxReplicas': 3 };
  for (const kind of ['hpa', 'keda'])
    expect(() => render({ ...turned, 'autoscaling.kind': kind })).toThrow(
      'autoscaling: minReplicas 5 is above maxReplicas 3',
    );
  expect(render({ ...turned, 'autoscaling.kind': 'none' })).not.toEqual([]);
});

test.runIf(hasHelm)('an origin with a card claims it and serves the model that it pulls', () => {
  const { pod, origin } = chart('card');
  expect(origin.resources.limits['nvidia.com/gpu']).toBe('1');
  expect(origin.env).toContainEqual({ name: 'CONTINUO_PROVIDER', value: 'cuda' });
  expect(namesOf(chart('defaults').origin)).not.toContain('CONTINUO_PROVIDER');
  const pull = pod.initContainers.find(({ name }) => name === 'pull')!;
  const link = pull.args[pull.args.indexOf('--link') + 1]!;
  expect(origin.env).toContainEqual({ name: 'CONTINUO_MODEL_DIR', value: link });
  for (const { volumeMounts } of [pull, origin])
    expect(volumeMounts.map(({ mountPath }) => mountPath)).toContain(path.dirname(link));
  expect(pull.image).toBe(origin.image);
});

test.runIf(hasHelm)(
  'a model that is built in the pod gets the memory of the origin, and its name from what is built',
  () => {
    const all = render({ model: { build: 'Qwen/Qwen3-0.6B-Base:q4' } });
    const deployment = all.find(({ kind }) => kind === 'Deployment') as unknown as Present<IDeployment>;
    const { initContainers, containers } = deployment.spec.template.spec;
    const [build, origin] = [initContainers[0]!, containers[0]!];
    expect(build.args).toEqual(['build', 'Qwen/Qwen3-0.6B-Base:q4', '--out', '/models/current']);
    expect(build.resources).toEqual(origin.resources);
    expect(origin.env).toContainEqual({ name: 'CONTINUO_MODEL_DIR', value: '/models/current' });
    expect(namesOf(origin)).not.toContain('CONTINUO_MODEL_NAME');
    expect(() => render({ model: { pull: MODEL.pull, build: MODEL.pull } })).toThrow(
      'pull or build, not both',
    );
  },
);

test.runIf(hasHelm)('a model that is pulled keeps its name, unless another one is set', () => {
  const nameIn = (model: object) => {
    const all = render({ model }) as unknown as readonly Present<IDeployment>[];
    const { env } = all.find(({ kind }) => kind === 'Deployment')!.spec.template.spec.containers[0]!;
    return env.find(({ name }) => name === 'CONTINUO_MODEL_NAME')?.value;
  };
  expect(nameIn({ pull: MODEL.pull })).toBe(MODEL.pull);
  expect(nameIn(MODEL)).toBe(MODEL.name);
  expect(nameIn({})).toBe(undefined);
});

test.runIf(hasHelm)('the schemas reject misspelled fields, wrong types and missing fields', () => {
  const text = JSON.stringify(chart('defaults').deployment);
  const changed = (from: string, to: string) => () => validated(JSON.parse(text.replace(from, to)));
  expect(changed('', '')).not.toThrow();
  expect(changed('"readinessProbe"', '"readynessProbe"')).toThrow('containers/0/readynessProbe');
  expect(changed('"periodSeconds":2', '"periodSeconds":"2"')).toThrow('periodSeconds must be integer');
  expect(changed('"containerPort"', '"port"')).toThrow('containerPort');
  expect(changed('"Deployment"', '"Deploymint"')).toThrow('no schema for apps/v1 Deploymint');
});

test.runIf(hasHelm)('values that the chart does not know, or of a wrong kind, are refused by name', () => {
  // helm writes the place of a value as /model/pull or, before 3.18, as model.pull.
  expect(() => render({ gpuu: true })).toThrow('gpuu');
  expect(() => render({ 'autoscaling.kind': 'often' })).toThrow(/autoscaling[./]kind/);
  expect(() => render({ model: { pull: 'no-owner' } })).toThrow(/model[./]pull/);
  expect(() => render({ env: { CONTINUO_ORIGIN_PORT: '9200' } })).toThrow('CONTINUO_ORIGIN_PORT');
});

test.runIf(hasHelm)('the origin takes variables of other programs, such as a collector of traces', () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel:4318', MALLOC_MMAP_THRESHOLD_: '1048576' };
  const all = render({ env, secretName: '7' });
  const { spec } = all.find(
    ({ kind, metadata }) => kind === 'Deployment' && /origin/.test(metadata.name),
  ) as unknown as Present<IDeployment>;
  for (const [name, value] of Object.entries(env))
    expect(spec.template.spec.containers[0]!.env).toContainEqual({ name, value });
});

test.runIf(hasHelm).each([
  [60, '60s'],
  [180, '180s'],
  [600, '180s'],
])('with %i s to drain, cloudflared has a grace period that it accepts', (drainSeconds, period) => {
  const all = render({ drainSeconds });
  const tunnel = all.find(
    ({ kind, metadata }) => kind === 'Deployment' && /tunnel/.test(metadata.name),
  ) as unknown as Present<IDeployment>;
  const { args } = tunnel.spec.template.spec.containers[0]!;
  expect(args[args.indexOf('--grace-period') + 1]).toBe(period);
});

test('the chart has the version of the packages', () => {
  const { version } = JSON.parse(read('package.json')) as { readonly version: string };
  const values = parse(read('origin/deploy/helm/values.yaml')) as {
    readonly image: { readonly tag: string };
  };
  expect(parse(read('origin/deploy/helm/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  expect(values.image.tag).toBe(version);
});
