import { spawnSync } from 'node:child_process';
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { parseAllDocuments } from 'yaml';

/** Renders the manifests with kustomize and validates them with the schemas of Kubernetes and KEDA. */

const PROGRAMS = ['kustomize build', 'kubectl kustomize'];
const shell = (command: string) => spawnSync(command, { shell: true, encoding: 'utf8' });

/** null where neither kustomize nor kubectl is installed */
export const renderer = PROGRAMS.find((program) => shell(`${program} --help`).status === 0) ?? null;

const MODELS = [Deployment, Service, PodDisruptionBudget, HorizontalPodAutoscaler, ScaledObject];

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
}

/** @throws if kustomize refuses the directory, or a manifest does not conform to its schema */
export function render(directory: string): Manifest[] {
  const { status, stdout, stderr } = shell(`${renderer} "${directory}"`);
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
