import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { readConfig, variables } from '../../../origin/config/config.ts';
import { createMetrics } from '../../../origin/http/metrics.ts';
import { type Deployment, manifest, type PodContainer } from './kubernetes-schemas.ts';
import { render } from './kustomize.ts';
import { readPlainYaml } from './plain-yaml.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const KUBERNETES = path.join(ROOT, 'origin/deploy/kubernetes');
const OVERLAYS = ['cpu', 'gpu'];

type Rendered = z.infer<typeof manifest>;

function overlay(name: string) {
  const all = render(path.join(KUBERNETES, 'overlays', name)).map((found) => manifest.parse(found));
  const of = <K extends Rendered['kind']>(kind: K) =>
    all.filter((found): found is Extract<Rendered, { kind: K }> => found.kind === kind);
  const [deployment] = of('Deployment');
  const pod = deployment!.spec.template.spec;
  return { all, of, deployment: deployment!, pod, origin: pod.containers[0]! };
}

const containersOf = ({ spec }: Deployment): PodContainer[] => [
  ...spec.template.spec.initContainers,
  ...spec.template.spec.containers,
];

const namesOf = (container: PodContainer) => (container.env ?? []).map(({ name }) => name);

test('every file of the tree is reached from an overlay', () => {
  const files = globSync('**/*.yaml', { cwd: KUBERNETES });
  const listed = files
    .filter((file) => path.basename(file) === 'kustomization.yaml')
    .flatMap((file) => {
      const text = readFileSync(path.join(KUBERNETES, file), 'utf8');
      const names = [...text.matchAll(/^ *- (?:path: )?([./\w-]+)$/gm)].map(([, name]) => name!);
      return names.map((name) =>
        path.join(path.dirname(file), name.endsWith('.yaml') ? name : `${name}/kustomization.yaml`),
      );
    });
  const roots = OVERLAYS.map((name) => `overlays/${name}/kustomization.yaml`);
  expect([...new Set([...listed, ...roots])].toSorted()).toEqual(files.toSorted());
});

describe.each(OVERLAYS)('overlay %s', (name) => {
  const { all, of, deployment, pod, origin } = overlay(name);

  test('holds one Deployment, one Service, one disruption budget and one scaler, each named once', () => {
    const kinds = all.map(({ kind }) => kind);
    expect(kinds.filter((kind) => ['HorizontalPodAutoscaler', 'ScaledObject'].includes(kind))).toHaveLength(
      1,
    );
    expect(kinds).toEqual(expect.arrayContaining(['Deployment', 'Service', 'PodDisruptionBudget']));
    expect(new Set(kinds).size).toBe(4);
    expect(all).toHaveLength(4);
    expect(all.map(({ metadata }) => metadata.namespace)).toEqual(Array(4).fill('continuo'));
  });

  test('selectors match the pods’ labels', () => {
    const labels = deployment.spec.template.metadata.labels!;
    const selectors = [
      deployment.spec.selector.matchLabels,
      of('Service')[0]!.spec.selector,
      of('PodDisruptionBudget')[0]!.spec.selector.matchLabels,
    ];
    for (const selector of selectors) {
      expect(Object.keys(selector)).not.toEqual([]);
      expect(labels).toMatchObject(selector);
    }
  });

  test('ports named by probes and the Service are ports of their containers, the origin’s the default one', () => {
    for (const container of containersOf(deployment)) {
      const ports = (container.ports ?? []).map(({ name }) => name);
      const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
      for (const probe of probes) if (probe) expect(ports).toContain(probe.httpGet.port);
    }
    const listening = readConfig({ CONTINUO_ORIGIN_SECRET: 'only for the port' }).port;
    expect(origin.ports).toEqual([{ name: 'http', containerPort: listening }]);
    expect(of('Service')[0]!.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(deployment.spec.template.metadata.annotations?.['prometheus.io/port']).toBe(String(listening));
  });

  test('the origin is probed at its health route', () => {
    const { startupProbe, readinessProbe, livenessProbe } = origin;
    const paths = [startupProbe, readinessProbe, livenessProbe].map((probe) => probe?.httpGet.path);
    expect(paths).toEqual(['/health', '/health', '/health']);
    expect(readFileSync(path.join(ROOT, 'origin/http/server.ts'), 'utf8')).toContain("'/health'");
  });

  test('the origin’s variables are those of its configuration, with values it accepts', () => {
    const known = Object.keys(variables.shape);
    expect(namesOf(origin).filter((variable) => !known.includes(variable))).toEqual([]);
    const values = (origin.env ?? []).map((variable) => [
      variable.name,
      'value' in variable ? variable.value : 'from a secret',
    ]);
    const { drainMs } = readConfig(Object.fromEntries(values));
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drainMs / 1000 + 5);
  });

  test('secrets are referred to, never written down', () => {
    for (const container of containersOf(deployment)) {
      for (const variable of container.env ?? []) {
        if (/SECRET|TOKEN|KEY/.test(variable.name)) expect(variable).toHaveProperty('valueFrom.secretKeyRef');
      }
    }
    expect(namesOf(origin)).toContain('CONTINUO_ORIGIN_SECRET');
  });

  test('nothing runs as root, gains rights or writes to its image', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(pod.securityContext.runAsUser).toBeGreaterThan(0);
    expect(pod.automountServiceAccountToken).toBe(false);
    for (const { securityContext } of containersOf(deployment)) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('every mount has its volume and every volume its mount', () => {
    const mounted = containersOf(deployment).flatMap(({ volumeMounts }) => volumeMounts ?? []);
    expect([...new Set(mounted.map(({ name }) => name))].toSorted()).toEqual(
      pod.volumes.map(({ name }) => name).toSorted(),
    );
  });

  test('images are named with a tag, the origin’s by the overlay', () => {
    for (const { image } of containersOf(deployment)) expect(image).toMatch(/^[\w./-]+:[\w.-]+$/);
    expect(origin.image).toMatch(/^registry\.example\/continuo-origin/);
  });

  test('the tunnel is a sidecar that outlives the origin’s drain', () => {
    const [tunnel] = pod.initContainers.filter(({ image }) => image.startsWith('cloudflare/cloudflared:'));
    expect(tunnel?.restartPolicy).toBe('Always');
    expect(namesOf(tunnel!)).toEqual(['TUNNEL_TOKEN']);
  });

  test('the scaler aims at the Deployment and reads the queue’s length as the origin tells it', async () => {
    const scaler = of('HorizontalPodAutoscaler')[0] ?? of('ScaledObject')[0];
    const { apiVersion, kind, metadata } = deployment;
    expect(scaler?.spec.scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name });
    const { registry } = createMetrics({
      health: () => ({ status: 'ready', models: [], running: 0, waiting: 0 }),
      engines: () => [],
    });
    const waiting = 'continuo_origin_waiting_sequences';
    expect((await registry.getMetricsAsJSON()).map((metric) => metric.name)).toContain(waiting);
    expect(JSON.stringify(scaler?.spec)).toContain(waiting);
    expect(deployment.spec.replicas).toBe(undefined);
  });

  test('programs named in commands exist', () => {
    const commands = containersOf(deployment).flatMap(({ command }) => command ?? []);
    for (const word of commands.filter((word) => word.endsWith('.ts'))) {
      expect(existsSync(path.join(ROOT, word))).toBe(true);
    }
  });
});

test('the GPU overlay claims a GPU and serves the model it pulls', () => {
  const { pod, origin } = overlay('gpu');
  expect(origin.resources.limits['nvidia.com/gpu']).toBe('1');
  expect(origin.env).toContainEqual({ name: 'CONTINUO_PROVIDER', value: 'cuda' });
  expect(namesOf(overlay('cpu').origin)).not.toContain('CONTINUO_PROVIDER');
  const pull = pod.initContainers.find(({ name }) => name === 'pull');
  const link = pull!.args![pull!.args!.indexOf('--link') + 1]!;
  expect(origin.env).toContainEqual({ name: 'CONTINUO_MODEL_DIR', value: link });
  for (const { volumeMounts } of [pull!, origin]) {
    expect(volumeMounts!.map(({ mountPath }) => mountPath)).toContain(path.dirname(link));
  }
  expect(pull!.image).toBe(origin.image);
});

describe('the reader of manifests', () => {
  test('reads what it knows', () => {
    const text =
      'a: # comment\n  - b: \'x # y\'\n    c: [p, "1", 2]\n  - d-e/f.g: true\n  - -3\n# end\nh: v:8080\n';
    expect(readPlainYaml(text)).toEqual({
      a: [{ b: 'x # y', c: ['p', '1', 2] }, { 'd-e/f.g': true }, -3],
      h: 'v:8080',
    });
  });

  test.each([
    'a: yes',
    'a: 0123',
    'a: 12:30',
    'a: 2026-01-01',
    'a: 1.5',
    'a: null',
    'a: True',
    'a: &x b',
    'a: *x',
    'a: |',
    'a: {b: c}',
    'a: b: c',
    'a:\n   b: 1',
    'a: 1\na: 2',
    'a: 1\n  b: 2',
    'a:',
    'a: "x\\n"',
    "a: 'it''s'",
    'a: "x',
    '\ta: 1',
    'a: b #c\n - d',
  ])('refuses %j instead of guessing', (text) => {
    expect(() => readPlainYaml(text)).toThrow();
  });
});

test('a field Kubernetes does not know is refused', () => {
  const [deployment] = render(path.join(KUBERNETES, 'base')).filter(({ kind }) => kind === 'Deployment');
  expect(manifest.safeParse(deployment).success).toBe(true);
  expect(manifest.safeParse({ ...deployment, specs: {} }).success).toBe(false);
  const text = JSON.stringify(deployment).replace('"readinessProbe"', '"readynessProbe"');
  expect(manifest.safeParse(JSON.parse(text)).success).toBe(false);
});
