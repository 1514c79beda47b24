// Prints the bill of materials (CycloneDX) of something that a release ships. usage: bill-of-materials.js tarball|origin|edge
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The tarball and the image of the edge hold all workspaces: what is bundled ships, too. */
const WORKSPACES = { tarball: ['origin/cli'], edge: ['origin/cli'], origin: ['origin'] };

const roots = WORKSPACES[process.argv[2]];
if (roots === undefined) throw new Error(`usage: bill-of-materials.js ${Object.keys(WORKSPACES).join('|')}`);
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));

/** Returns where a package lies for the one at `folder`: beside it, or in a node_modules above. */
function resolve(folder, name) {
  for (let at = folder; ; at = path.posix.dirname(at)) {
    const found = path.posix.join(at, 'node_modules', name);
    if (found in packages) return packages[found].link ? packages[found].resolved : found;
    if (at === '.') return null;
  }
}

// `npm sbom --omit=dev` leaves out what a development dependency also needs, so the packages are found here.
const shipped = new Set(roots);
for (const folder of shipped) {
  const { dependencies, optionalDependencies } = packages[folder];
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const found = resolve(folder, name);
    if (found !== null) shipped.add(found);
    // Optional packages of systems that no lock file names cannot be installed either.
    else if (optionalDependencies?.[name] === undefined) throw new Error(`${name} is not locked`);
  }
}
const nameOf = (folder) =>
  packages[folder].name ?? folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
const foreign = [...shipped].filter((folder) => folder.includes('node_modules/'));
const ids = new Set(foreign.map((folder) => `${nameOf(folder)}@${packages[folder].version}`));

const arguments_ = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'];
const all = JSON.parse(execFileSync('npm', arguments_, { encoding: 'utf8', maxBuffer: 64 * 2 ** 20 }));
const components = all.components.filter(({ name, version }) => ids.delete(`${name}@${version}`));
if (ids.size > 0) throw new Error(`npm does not list ${[...ids].join(', ')}`);
const refs = new Set(components.map((component) => component['bom-ref']));
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
const metadata = {
  ...all.metadata,
  component: { ...all.metadata.component, name: `continuo-${process.argv[2]}` },
};
process.stdout.write(`${JSON.stringify({ ...all, metadata, components, dependencies }, null, 2)}\n`);
