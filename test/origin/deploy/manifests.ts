import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { parseAllDocuments } from 'yaml';

/** Renders the chart with helm and validates it with the schemas of Kubernetes and KEDA. */

const CHART = path.resolve(import.meta.dirname, '../../../origin/deploy/helm');
const helm = (...args: string[]) => spawnSync('helm', args, { encoding: 'utf8' });

export const hasHelm = helm('version').status === 0;

const MODELS = [
  Deployment,
  Service,
  PodDisruptionBudget,
  HorizontalPodAutoscaler,
  NetworkPolicy,
  ScaledObject,
];

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/**
 * @throws if helm or the schema of the values refuses `values`, or a manifest does not conform to its schema
 */
export function render(values: object): Manifest[] {
  const args = ['--namespace', 'continuo', '--kube-version', '1.30.0'];
  for (const [name, value] of Object.entries(values))
    args.push('--set-json', `${name}=${JSON.stringify(value)}`);
  const { status, stdout, stderr } = helm('template', 'continuo', CHART, ...args);
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).map((document) => validated(document.toJS()));
}

/** @throws for values of a wrong type or range, missing fields and unknown fields */
export function validated(manifest: Manifest): Manifest {
  const model = MODELS.find((one) => one.apiVersion === manifest.apiVersion && one.kind === manifest.kind);
  if (model === undefined) throw new Error(`no schema for ${manifest.apiVersion} ${manifest.kind}`);
  const read = new Set<string>();
  model.prototype.validate.call(recordReads(manifest, '', read));
  // The schemas permit unknown fields, but the validator reads only the fields that they name.
  const unknown = fieldsOf(manifest, '').find((field) => !read.has(field));
  if (unknown !== undefined) throw new Error(`${manifest.kind} has no field ${unknown}`);
  return manifest;
}

function recordReads(value: unknown, path: string, read: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const get = (target: object, name: string | symbol): unknown => {
    read.add(`${path}/${String(name)}`);
    return recordReads(Reflect.get(target, name), `${path}/${String(name)}`, read);
  };
  return new Proxy(value, { get });
}

function fieldsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const fields = Object.entries(value).map(([name, inner]) => [`${path}/${name}`, inner] as const);
  return fields.flatMap(([field, inner]) => [field, ...fieldsOf(inner, field)]);
}
