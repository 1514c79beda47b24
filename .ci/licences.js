// Fails if a package of a CycloneDX bill of materials has a licence that has not been accepted. usage: licences.js SBOM
import { readFileSync } from 'node:fs';

/** Licences whose terms a release keeps by naming the packages; those of LGPL are separate files that users may replace. */
const ACCEPTED = new Set([
  ...[
    '0BSD',
    'Apache-2.0',
    'BlueOak-1.0.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    'CC0-1.0',
    'ISC',
    'MIT',
    'Unlicense',
  ],
  'LGPL-3.0-or-later',
]);

/** `MIT OR GPL-2.0` is accepted if one of the two is, `MIT AND GPL-2.0` if both are. */
const isAccepted = (expression) =>
  expression
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((name) => ACCEPTED.has(name.trim())));

const { components } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const own = ({ name }) => name.startsWith('@continuo/') || name.startsWith('continuo');
const refused = components
  .filter((component) => !own(component))
  .map(({ name, version, licenses = [] }) => {
    const found = licenses.map((one) => one.expression ?? one.license.id ?? one.license.name).join(' AND ');
    return { name: `${name}@${version}`, found };
  })
  .filter(({ found }) => found === '' || !isAccepted(found));
for (const { name, found } of refused) console.error(`${name}: licence '${found}' is not accepted`);
console.log(`${components.length} packages, ${refused.length} with a licence that is not accepted`);
process.exitCode = refused.length > 0 || components.length === 0 ? 1 : 0;
