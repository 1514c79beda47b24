import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ALLOWED_EDGES } from './architecture-edges.ts';
import {
  compareEdges,
  findCycle,
  folderNodes,
  foldersOfMap,
  graphOf,
  mapNode,
  parseSource,
  readSources,
  type SourceFile,
  WORKSPACES,
  workspaceOf,
} from './support/source-graph.ts';

const sources = [...readSources('{worker,origin,shared}/**/*.ts'), ...readSources('worker/site/**/*.tsx')];
const inFolder = (folder: string) => sources.filter(({ file }) => file.startsWith(`${folder}/`));

const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');

/** Returns the imports that `allowed` does not accept, as "file → import". */
const forbiddenImports = (files: readonly SourceFile[], allowed: (name: string) => boolean): string[] =>
  files.flatMap(({ file, imports }) =>
    imports.filter((name) => !allowed(name)).map((name) => `${file} → ${name}`),
  );

/** The page lives with the Worker that serves it but runs in browsers; its build runs in Node. */
const isSiteBuild = (file: string) => file.startsWith('worker/site/build/');
const isVirtual = (name: string) => /^(cloudflare|node|virtual):/.test(name);

/** Workspaces that each workspace may import. */
const ALLOWED_WORKSPACES: Readonly<Record<string, readonly string[]>> = {
  '@continuo/shared': [],
  '@continuo/limits': ['@continuo/shared'],
  '@continuo/worker': ['@continuo/limits', '@continuo/shared'],
  // The page runs the engine in the browser.
  '@continuo/site': ['@continuo/origin', '@continuo/shared', '@continuo/worker'],
  // The origin fetches models and has them built; the builder writes what the origin's reader of ONNX files
  // reads.
  '@continuo/origin': ['@continuo/export', '@continuo/grammar', '@continuo/shared'],
  '@continuo/export': ['@continuo/origin', '@continuo/shared'],
  '@continuo/grammar': ['@continuo/shared'],
  '@continuo/cli': ['@continuo/origin', '@continuo/shared', '@continuo/site', '@continuo/worker'],
};

/** Modules without I/O, clock, randomness or ONNX Runtime. */
const PURE = [
  /^worker\/dialects\//,
  /^worker\/limits\/quota\//,
  /^shared\/(dynamic-threshold|virtual-times)\.ts$/,
  /^origin\/engine\/(kv|scheduling|sequences|state|text)\/[a-z-]+\.ts$/,
  /^origin\/sampling\//,
  /^origin\/model\/runner\/batch-inputs\.ts$/,
  /^origin\/request\/context-budget\.ts$/,
];

/** The width that biome.json has for code, and does not check in comments. */
const COLUMNS = 110;

/** Returns the numbers of the lines of comment that are too wide. A directive of Biome is one line. */
const wideComments = (text: string): number[] =>
  text.split('\n').flatMap((line, index) => {
    const isComment = /^\s*(\/\/|\/\*|\*)/.test(line) && !line.includes('biome-ignore');
    return isComment && [...line].length > COLUMNS ? [index + 1] : [];
  });

/** Above these sizes a file or folder may be two rooms. It is listed, not refused. */
const LARGE_FILE_LINES = 300;
const LARGE_FOLDER_FILES = 25;

/** Everything that may lie at the root of the repository, beside what `.gitignore` names. */
const ROOT = `
  .ci .dev.vars.example .editorconfig .git .github .gitignore .markdownlint-cli2.jsonc .npmrc
  CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md
  biome.json docs origin package-lock.json package.json shared test tsconfig.json vitest.config.ts
  worker wrangler.toml`;

describe('packages', () => {
  test('the scan finds the source tree', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(sources.find(({ file }) => file === 'worker/http/router.ts')?.imports).toContain('itty-router');
  });

  test.each(Object.keys(WORKSPACES))('%s lists exactly the packages that it imports', (workspace) => {
    const own = sources.filter(({ file }) => workspaceOf(file) === workspace);
    const imported = own.flatMap(({ imports }) => imports.filter((name) => !isVirtual(name)));
    const names = new Set(imported.map((name) => workspaceOf(name) ?? packageOf(name)));
    const manifest: unknown = JSON.parse(readFileSync(`${WORKSPACES[workspace]}/package.json`, 'utf8'));
    const { dependencies, devDependencies } = manifest as {
      readonly dependencies: Readonly<Record<string, string>>;
      /** What only a build imports, so that no image installs it. */
      readonly devDependencies?: Readonly<Record<string, string>>;
    };
    expect(Object.keys({ ...dependencies, ...devDependencies }).toSorted()).toEqual(
      [...names].filter((name) => name !== workspace).toSorted(),
    );
    const others = Object.keys(dependencies).filter((name) => name in WORKSPACES);
    expect(others.toSorted()).toEqual(ALLOWED_WORKSPACES[workspace]);
  });

  test('the root lists exactly the packages that tests import, and the tools of its scripts', () => {
    const tools = ['@biomejs/biome', '@cloudflare/workers-types', 'markdownlint-cli2', 'typescript'];
    const tests = [...readSources('test/**/*.{ts,tsx}'), ...readSources('vitest.config.ts')];
    const imported = tests.flatMap(({ imports }) =>
      imports.filter((name) => !isVirtual(name) && !existsSync(packageOf(name))).map(packageOf),
    );
    const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
    const { devDependencies } = manifest as { readonly devDependencies: Readonly<Record<string, string>> };
    const listed = Object.keys(devDependencies).filter((name) => !name.startsWith('@types/'));
    expect(listed.toSorted()).toEqual([...new Set([...imported, ...tools])].toSorted());
  });

  test('a workspace imports files of another by the name of its package', () => {
    const across = sources.flatMap(({ file, text }) =>
      [...text.matchAll(/(?:from |import\()'(\.[^']+)'/g)]
        .map(([, name]) => path.posix.join(path.posix.dirname(file), name!))
        .filter((target) => workspaceOf(target) !== workspaceOf(file))
        .map((target) => `${file} → ${target}`),
    );
    expect(across).toEqual([]);
  });

  test('shared and the Worker load nothing of Node, and the page no build', () => {
    const edge = sources.filter(({ file }) =>
      ['@continuo/limits', '@continuo/shared', '@continuo/worker'].includes(workspaceOf(file)!),
    );
    expect(forbiddenImports(edge, (name) => !name.startsWith('node:'))).toEqual([]);
    const page = inFolder('worker/site').filter(({ file }) => !isSiteBuild(file));
    expect(page.length).toBeGreaterThan(20);
    expect(forbiddenImports(page, (name) => !name.startsWith('node:') && !isSiteBuild(name))).toEqual([]);
  });

  test('the page loads only files of shared that load no zod, outside of the thread of its model', () => {
    const page = inFolder('worker/site').filter(
      ({ file }) => !isSiteBuild(file) && !file.startsWith('worker/site/local/thread/'),
    );
    // Imports of types load nothing.
    const loading = page.map(({ file, text }) =>
      parseSource(file, text.replace(/^import type [^;]*;/gm, '')),
    );
    const allowed = (name: string) =>
      !name.startsWith('shared/') || /^shared\/(binary-text|csv|errors|framing|json-object)\.ts$/.test(name);
    expect(forbiddenImports(loading, allowed)).toEqual([]);
  });

  test('pure modules use no I/O, clock or randomness', () => {
    const pure = sources.filter(({ file }) => PURE.some((rule) => rule.test(file)));
    expect(pure.length).toBeGreaterThan(20);
    expect(PURE.filter((rule) => !pure.some(({ file }) => rule.test(file)))).toEqual([]);
    expect(
      forbiddenImports(pure, (name) => !name.startsWith('node:') && !/^(koffi|onnxruntime-node)/.test(name)),
    ).toEqual([]);
    const impure =
      /\b(Date\.now|new Date\(\)|performance\.now|Math\.random|crypto\.|setTimeout|setInterval|process\.)/;
    const code = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    expect(pure.filter(({ text }) => impure.test(code(text))).map(({ file }) => file)).toEqual([]);
  });

  test('only origin/model/ort imports ONNX Runtime', () => {
    const importers = sources.filter(({ imports }) =>
      imports.some((name) => /^(koffi|onnxruntime-node|onnxruntime-common)$/.test(packageOf(name))),
    );
    const outside = importers.map(({ file }) => file).filter((file) => !file.startsWith('origin/model/ort/'));
    expect(outside).toEqual([]);
  });

  test('nothing below the engine as a library loads Node or a native package', () => {
    const byFile = new Map(sources.map((source) => [source.file, source]));
    const below = new Set(['origin/local/local-model.ts']);
    for (const file of below)
      for (const name of byFile.get(file)?.imports ?? []) if (byFile.has(name)) below.add(name);
    expect(below.size).toBeGreaterThan(150);
    const files = sources.filter(({ file }) => below.has(file));
    expect(
      forbiddenImports(
        files,
        (name) => byFile.has(name) || /^(zod|leven|@huggingface\/tokenizers)$/.test(name),
      ),
    ).toEqual([]);
  });

  test('the engine sees the ModelRunner interface, never a runner', () => {
    const engine = inFolder('origin/engine').filter(({ file }) => !/\/(engine-thread|sampler-)/.test(file));
    expect(
      forbiddenImports(engine, (name) => !/^origin\/model\/(?!(model-runner|device-draws)\.ts)/.test(name)),
    ).toEqual([]);
  });
});

const MAP = foldersOfMap(readFileSync('docs/architecture.md', 'utf8'));
const nodeOf = (file: string) => mapNode(MAP)(file) ?? file;

describe('structure', () => {
  test('no import cycle between files, type imports included', () => {
    expect(findCycle(graphOf(sources, (file) => file))).toBeNull();
  });

  test('the map lists every folder: beside listed folders, a folder has only files', () => {
    expect(MAP.length).toBeGreaterThan(50);
    expect(MAP.filter((folder) => !existsSync(folder))).toEqual([]);
    expect(unmapped(sources, MAP)).toEqual([]);
  });

  test('no cycle between the folders of the map, type imports included', () => {
    expect(findCycle(graphOf(sources, nodeOf))).toBeNull();
  });

  test('no cycle between the folders inside a folder of the map', () => {
    expect(findCycle(graphOf(sources, folderNodes(sources)))).toBeNull();
  });

  test('folders import only the folders that the list allows, and the list has no unused entry', () => {
    expect(compareEdges(graphOf(sources, nodeOf), ALLOWED_EDGES)).toEqual({ forbidden: [], unused: [] });
  });

  test('no file is called utils, helpers, common or manager', () => {
    const vague = /(^|[-/])(utils?|helpers?|common|manager)([-.]|$)/;
    expect(sources.map(({ file }) => file).filter((file) => vague.test(file))).toEqual([]);
  });

  test('a line of comment has at most 110 columns, as Biome leaves to code', () => {
    const all = [...sources, ...readSources('test/**/*.{ts,tsx}')];
    expect(all.flatMap(({ file, text }) => wideComments(text).map((line) => `${file}:${line}`))).toEqual([]);
  });

  afterAll(() => {
    for (const line of [
      ...largeFiles(sources),
      ...largeFolders([...sources, ...readSources('test/**/*.ts')]),
    ]) {
      console.info(`Large, perhaps two rooms: ${line}`);
    }
  });

  test('the root has only the listed files and folders', () => {
    const listed = new Set(ROOT.trim().split(/\s+/));
    // A wheel is ignored so that it cannot be committed, and reported all the same.
    const ignored = readFileSync('.gitignore', 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line !== '*.whl');
    const isIgnored = (name: string) =>
      ignored.some((line) => path.matchesGlob(name, line.replace(/\/$/, '')));
    expect(readdirSync('.').filter((name) => !listed.has(name) && !isIgnored(name))).toEqual([]);
  });

  test('every test folder mirrors a source folder or is one of the shared test folders', () => {
    const folders = new Set(sources.map(({ file }) => path.posix.dirname(file)));
    const tests = readSources('test/{worker,origin,shared}/**/*.test.ts').map(({ file }) =>
      path.posix.dirname(file).slice('test/'.length),
    );
    expect([...new Set(tests)].filter((folder) => !folders.has(folder))).toEqual([]);
  });

  test('an expectation reads the page until it holds; what holds only now is read into a variable first', () => {
    const once =
      /\bexpect\((?:(?!;\n)[\s\S])*?\bawait (?!(?:site\.)?violations\(|sent\)).*|.*\.resolves\b.*/g;
    const pages = readSources('test/e2e/site/*.ts');
    expect(pages.length).toBeGreaterThan(10);
    expect(
      pages.flatMap(({ file, text }) => [...text.matchAll(once)].map(([read]) => `${file}: ${read}`)),
    ).toEqual([]);
  });
});

/**
 * Returns the files that no row of the map describes: in no listed folder, or in a folder beside listed ones.
 */
function unmapped(files: readonly SourceFile[], map: readonly string[]): string[] {
  const hasListedBelow = (folder: string) => map.some((other) => other.startsWith(`${folder}/`));
  return files
    .map(({ file }) => ({ file, folder: mapNode(map)(file) }))
    .filter(
      ({ file, folder }) =>
        folder === null || (hasListedBelow(folder) && path.posix.dirname(file) !== folder),
    )
    .map(({ file }) => file);
}

function largeFiles(files: readonly SourceFile[]): string[] {
  return files
    .map(({ file, text }) => ({ file, lines: text.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > LARGE_FILE_LINES)
    .map(({ file, lines }) => `${file}, ${lines} lines`);
}

function largeFolders(files: readonly SourceFile[]): string[] {
  const folders = Map.groupBy(files, ({ file }) => path.posix.dirname(file));
  return [...folders]
    .filter(([, inside]) => inside.length > LARGE_FOLDER_FILES)
    .map(([folder, inside]) => `${folder}/, ${inside.length} files`);
}

describe('the checks themselves', () => {
  test('find lines of comment that are too wide', () => {
    const wide = 'x'.repeat(COLUMNS);
    expect(wideComments(`/** ${wide} */\n * short\nconst x = '${wide}'; // code\n  // ${wide}`)).toEqual([
      1, 4,
    ]);
  });

  const a = parseSource('origin/a/one.ts', "import type { B } from '../b/two.ts';\n");
  const b = parseSource('origin/b/two.ts', "export { A } from '../a/three.ts';\n");
  const c = parseSource('origin/a/three.ts', "const later = import('node:fs');\n");

  const map = foldersOfMap(
    '## The map\n\n| Folder | What |\n| `origin/a/`, `origin/b/` | `x/` |\n\n## Next\n| `c/` |',
  );
  const folderOf = (file: string) => mapNode(map)(file)!;

  test('find a cycle of folders through type imports, where files have none', () => {
    expect(findCycle(graphOf([a, b, c], (file) => file))).toBeNull();
    expect(findCycle(graphOf([a, b, c], folderOf))).toEqual(['origin/a', 'origin/b', 'origin/a']);
  });

  test('find a cycle between a root and a folder below it', () => {
    const root = parseSource('origin/main.ts', "import './a/one.ts';\n");
    const below = parseSource('origin/a/one.ts', "import type { Log } from '../log.ts';\n");
    const log = parseSource('origin/log.ts', '');
    const node = (file: string) => mapNode(['origin', 'origin/a'])(file)!;
    expect(findCycle(graphOf([root, below, log], node))).toEqual(['origin', 'origin/a', 'origin']);
  });

  test('find a folder that the map does not list', () => {
    expect(map).toEqual(['origin/a', 'origin/b']);
    const files = ['origin/a/deep/x.ts', 'origin/c/y.ts', 'worker/z.ts'].map((file) => parseSource(file, ''));
    expect(unmapped(files, ['origin', ...map])).toEqual(['origin/c/y.ts', 'worker/z.ts']);
  });

  test('find a cycle of files', () => {
    const back = parseSource('origin/a/three.ts', "import { a } from './one.ts';\n");
    expect(findCycle(graphOf([a, b, back], (file) => file))).toHaveLength(4);
  });

  test('find a forbidden edge and an unused permission', () => {
    const allowed = { 'origin/a': [], 'origin/b': ['origin/a', 'origin/c'] };
    expect(compareEdges(graphOf([a, b, c], folderOf), allowed)).toEqual({
      forbidden: ['origin/a → origin/b'],
      unused: ['origin/b → origin/c'],
    });
  });
});
