import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { variables } from '../../../origin/config/config.ts';
import { VARIABLE_NAMES } from '../../../worker/env/settings.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../../origin/deploy');

interface Service {
  readonly image?: string;
  readonly build?: { readonly dockerfile: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly ports?: readonly string[];
  readonly command?: string;
  readonly stop_grace_period?: string;
}

const { services, volumes } = parse(readFileSync(path.join(FOLDER, 'compose.yaml'), 'utf8'), {
  merge: true,
}) as { services: Record<'origin' | 'edge' | 'tls', Service>; volumes: object };

test('origin and edge run without root rights on a read-only file system, and only this host reaches the edge', () => {
  const confined = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] };
  expect(services.tls).toMatchObject({ ...confined, cap_add: ['NET_BIND_SERVICE'] });
  expect(services.tls.image).toMatch(/^caddy:[\w.-]+@sha256:[0-9a-f]{64}$/);
  for (const service of [services.origin, services.edge]) {
    expect(service).toMatchObject(confined);
    const file = service.build!.dockerfile;
    const dockerfile = readFileSync(path.join(FOLDER, path.basename(file)), 'utf8');
    expect(dockerfile).toContain('\nHEALTHCHECK ');
    expect(dockerfile).toContain('\nUSER 1000:1000\n');
    expect(existsSync(path.join(FOLDER, `${path.basename(file)}.dockerignore`))).toBe(true);
  }
  expect(services.origin.ports).toBe(undefined);
  for (const port of services.edge.ports!) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test('Docker lets the origin drain before it kills', () => {
  const drainSeconds = variables.shape.CONTINUO_DRAIN_SECONDS.parse(undefined);
  expect(Number.parseInt(services.origin.stop_grace_period!, 10)).toBeGreaterThan(drainSeconds + 10);
});

test('no caller behind the proxy chooses the address by which networks of keys are checked', () => {
  expect(services.tls.command).toContain('--header-up CF-Connecting-IP:{http.request.remote.host}');
});

/** What the images, their volumes or the other service decide. */
const FIXED_FOR_EDGE = [
  ...['ENVIRONMENT', 'ORIGIN_URL', 'ORIGIN_BINDING', 'DEVELOPMENT_KEY_SHA256'],
  ...['ADMIN_KEY_SHA256', 'KEY_ID_SECRET'],
];
const FIXED_FOR_ORIGIN = [
  ...['HOST', 'PORT', 'SECRET', 'SECRET_NEXT'].map((name) => `ORIGIN_${name}`),
  ...['METRICS_PORT', 'PROVIDER', 'PREFIX_CACHE_DIR', 'PREFIX_CACHE_DISK_MIB', 'DRAIN_SECONDS'],
].map((name) => `CONTINUO_${name}`);

test('the services take each variable that is not theirs to decide, hold no secret and share declared volumes', () => {
  const fromShell = ({ environment }: Service) =>
    Object.entries(environment!).flatMap(([name, value]) => (value === `\${${name}:-}` ? [name] : []));
  const origin = Object.keys(variables.shape).filter((name) => !FIXED_FOR_ORIGIN.includes(name));
  expect([...fromShell(services.origin), 'CONTINUO_ORIGIN_SECRET_FILE'].toSorted()).toEqual(
    origin.toSorted(),
  );
  const edge = VARIABLE_NAMES.filter((name) => !FIXED_FOR_EDGE.includes(name));
  expect(fromShell(services.edge).toSorted()).toEqual([...edge, 'UPSTREAM_API_KEY'].toSorted());
  const mounted = Object.values(services).flatMap((service) =>
    service.volumes.map((one) => one.split(':')[0]),
  );
  expect([...new Set(mounted)].toSorted()).toEqual(Object.keys(volumes).toSorted());
  expect(services.origin.volumes).toContain('secrets:/secrets:ro');
});

test('the file for a card changes only the origin: its image, and the card that it gets', () => {
  const gpu = parse(readFileSync(path.join(FOLDER, 'compose.gpu.yaml'), 'utf8')) as {
    readonly services: Record<string, Service>;
  };
  expect(Object.keys(gpu.services)).toEqual(['origin']);
  const { build, ...rest } = gpu.services.origin!;
  expect(existsSync(path.join(FOLDER, '../..', build!.dockerfile))).toBe(true);
  const devices = [{ driver: 'nvidia', count: 1, capabilities: ['gpu'] }];
  expect(rest).toEqual({ deploy: { resources: { reservations: { devices } } } });
});
