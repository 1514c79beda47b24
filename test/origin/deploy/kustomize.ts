import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { readPlainYaml, type Yaml } from './plain-yaml.ts';

/** The part of kustomize the manifests use: resources, components, JSON patches by target, namespace and images. */

const target = z.strictObject({ kind: z.string(), name: z.string() });
const shared = {
  resources: z.array(z.string()).default([]),
  components: z.array(z.string()).default([]),
  patches: z.array(z.strictObject({ path: z.string(), target })).default([]),
};
const kustomization = z.discriminatedUnion('kind', [
  z.strictObject({
    apiVersion: z.literal('kustomize.config.k8s.io/v1beta1'),
    kind: z.literal('Kustomization'),
    namespace: z.string().optional(),
    images: z
      .array(z.strictObject({ name: z.string(), newName: z.string(), newTag: z.string() }))
      .default([]),
    ...shared,
  }),
  z.strictObject({
    apiVersion: z.literal('kustomize.config.k8s.io/v1alpha1'),
    kind: z.literal('Component'),
    ...shared,
  }),
]);

const patchFile = z.array(
  z.strictObject({ op: z.enum(['add', 'replace']), path: z.string().startsWith('/'), value: z.json() }),
);

export type Manifest = { [key: string]: Yaml };
type Container = Yaml[] | Manifest;

const read = (file: string): Yaml => readPlainYaml(readFileSync(file, 'utf8'));

/** The manifests a directory with a kustomization.yaml stands for. @throws what kustomize would refuse, too */
export function render(directory: string): Manifest[] {
  return apply(directory, []);
}

function apply(directory: string, given: readonly Manifest[]): Manifest[] {
  const settings = kustomization.parse(read(path.join(directory, 'kustomization.yaml')));
  let manifests = [...given];
  for (const name of settings.resources) {
    const place = path.join(directory, name);
    if (name.endsWith('.yaml')) manifests.push(z.record(z.string(), z.json()).parse(read(place)) as Manifest);
    else manifests.push(...render(place));
  }
  for (const name of settings.components) manifests = apply(path.join(directory, name), manifests);
  for (const patch of settings.patches) {
    const matching = manifests.filter(
      (manifest) => nameOf(manifest) === `${patch.target.kind}/${patch.target.name}`,
    );
    if (matching.length !== 1) throw new Error(`${patch.path}: no single target`);
    for (const { op, path: pointer, value } of patchFile.parse(read(path.join(directory, patch.path)))) {
      patchOne(matching[0]!, op, pointer, structuredClone(value as Yaml));
    }
  }
  if (settings.kind === 'Component') return manifests;
  for (const manifest of manifests) {
    if (settings.namespace !== undefined) (manifest.metadata as Manifest).namespace = settings.namespace;
    for (const { name, newName, newTag } of settings.images)
      setImages(manifest, name, `${newName}:${newTag}`);
  }
  return manifests;
}

const nameOf = (manifest: Manifest): string =>
  `${manifest.kind as string}/${(manifest.metadata as Manifest).name as string}`;

/** RFC 6902: `-` is the end of an array; `replace` needs something there. */
function patchOne(manifest: Manifest, op: 'add' | 'replace', pointer: string, value: Yaml): void {
  const steps = pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = steps.pop()!;
  let place: Container = manifest;
  for (const step of steps) {
    const inner: Yaml | undefined = Array.isArray(place) ? place[Number(step)] : place[step];
    if (typeof inner !== 'object' || inner === null) throw new Error(`${pointer}: nothing at ${step}`);
    place = inner;
  }
  if (Array.isArray(place)) {
    if (op !== 'add' || last !== '-') throw new Error(`${pointer}: not an addition at the end`);
    place.push(value);
  } else {
    if (op === 'replace' && place[last] === undefined) throw new Error(`${pointer}: nothing to replace`);
    place[last] = value;
  }
}

function setImages(value: Yaml, name: string, image: string): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value) && value.image === name) value.image = image;
  for (const inner of Object.values(value)) setImages(inner, name, image);
}
