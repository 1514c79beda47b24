import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

/** The cuts between the rooms, checked on the import statements of every source file. */

interface Source {
  readonly file: string;
  readonly text: string;
  /** Specifiers as written; relative ones resolved to a path from the repository's root. */
  readonly imports: readonly string[];
  /** Those that are there when the program runs. */
  readonly loads: readonly string[];
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g;

const TYPE_IMPORT = /^(?:import|export) type [^;]*;/gm;

function read(file: string): Source {
  const text = readFileSync(file, 'utf8');
  const resolve = (name: string) =>
    name.startsWith('.') ? path.posix.join(path.posix.dirname(file), name) : name;
  const importsIn = (part: string) =>
    [...part.matchAll(IMPORT)].map((match) => resolve((match[1] ?? match[2] ?? match[3]) as string));
  return { file, text, imports: importsIn(text), loads: importsIn(text.replaceAll(TYPE_IMPORT, '')) };
}

const sources = globSync('{worker,origin,shared}/**/*.ts').toSorted().map(read);

const inRoom = (room: string) => sources.filter(({ file }) => file.startsWith(`${room}/`));
const packageOf = (name: string) =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');

/** Imports of `files` that `allowed` does not accept, as "file → import". */
const breaches = (files: readonly Source[], allowed: (name: string, file: string) => boolean): string[] =>
  files.flatMap(({ file, imports }) =>
    imports.filter((name) => !allowed(name, file)).map((name) => `${file} → ${name}`),
  );

/** Code of the Worker that runs in Node: the operators' command line. */
const isCommandLine = (file: string) => file.startsWith('worker/cli/');

const ORIGIN_LIBRARIES = [
  '@huggingface/tokenizers',
  'cli-progress',
  'cli-table3',
  'commander',
  'koffi',
  'onnxruntime-node',
  'pino',
  'prom-client',
  'sharp',
  'zod',
];

/** What the launcher runs the Worker in, and nobody else knows. */
const LOCAL_PLATFORM = ['esbuild', 'miniflare', 'wrangler'];

const PURE = [
  /^worker\/dialects\//,
  /^worker\/limits\/quota\//,
  /^origin\/engine\/(scheduler|sequence|running-set|kv-slots|stop-checker|invariants|waiting-queue)\.ts$/,
  /^origin\/sampling\//,
  /^origin\/model\/runner\/batch-inputs\.ts$/,
  /^origin\/tokenizer\/detokenizer\.ts$/,
];

describe('import rules', () => {
  test('the scan sees the tree', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(sources.find(({ file }) => file === 'worker/http/router.ts')?.imports).toContain('itty-router');
  });

  test('shared imports zod alone', () => {
    expect(breaches(inRoom('shared'), (name) => name === 'zod' || name.startsWith('shared/'))).toEqual([]);
  });

  test('worker imports shared, itty-router, zod and cloudflare:* alone', () => {
    const edge = inRoom('worker').filter(({ file }) => !isCommandLine(file));
    const allowed = (name: string) =>
      /^(worker|shared)\//.test(name) ||
      ['itty-router', 'zod'].includes(name) ||
      name.startsWith('cloudflare:');
    expect(breaches(edge, allowed)).toEqual([]);
    expect(edge.filter(({ imports }) => imports.some(isCommandLine)).map(({ file }) => file)).toEqual([]);
  });

  test('origin imports shared, node:* and its libraries, never worker; its launcher the local platform, too', () => {
    const allowed = (name: string) =>
      /^(origin|shared)\//.test(name) ||
      name.startsWith('node:') ||
      ORIGIN_LIBRARIES.includes(packageOf(name));
    const local = (name: string) => LOCAL_PLATFORM.includes(packageOf(name));
    expect(breaches(inRoom('origin/start'), (name) => allowed(name) || local(name))).toEqual([]);
    expect(
      breaches(
        inRoom('origin').filter(({ file }) => !file.startsWith('origin/start/')),
        allowed,
      ),
    ).toEqual([]);
  });

  test('the pure rooms take no I/O, no clock and no randomness', () => {
    const pure = sources.filter(({ file }) => PURE.some((rule) => rule.test(file)));
    expect(pure.length).toBeGreaterThan(20);
    expect(
      breaches(pure, (name) => !name.startsWith('node:') && !/^(koffi|onnxruntime-node)/.test(name)),
    ).toEqual([]);
    const impure =
      /\b(Date\.now|new Date\(\)|performance\.now|Math\.random|crypto\.|setTimeout|setInterval|process\.)/;
    const code = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    expect(pure.filter(({ text }) => impure.test(code(text))).map(({ file }) => file)).toEqual([]);
  });

  test('only origin/model/ort knows ONNX Runtime', () => {
    const knows = sources.filter(({ imports }) =>
      imports.some((name) => /^(koffi|onnxruntime-node|onnxruntime-common)$/.test(packageOf(name))),
    );
    expect(knows.map(({ file }) => file).filter((file) => !/^origin\/model\/ort\//.test(file))).toEqual([]);
  });

  test('the engine loop sees the ModelRunner interface, never a concrete runner', () => {
    const engine = inRoom('origin').filter(({ file }) =>
      /^origin\/engine\/(?!engine-thread|sampler-threads)/.test(file),
    );
    expect(breaches(engine, (name) => !/^origin\/model\/(?!model-runner\.ts)/.test(name))).toEqual([]);
  });

  test('the HTTP side sees the engine through its client and messages alone', () => {
    const http = sources.filter(({ file }) => /^origin\/(http\/server|request\/prepare)\.ts$/.test(file));
    expect(http).toHaveLength(2);
    expect(breaches(http, (name) => !/^origin\/engine\/(?!engine-client|messages)/.test(name))).toEqual([]);
  });
});

test('no file is loaded for itself: imports make no circle, types aside', () => {
  const loads = new Map(sources.map((source) => [source.file, source.loads]));
  const clear = new Set<string>();
  const circleFrom = (file: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (clear.has(file)) return null;
    for (const next of loads.get(file) ?? []) {
      const circle = circleFrom(next, [...way, file]);
      if (circle !== null) return circle;
    }
    clear.add(file);
    return null;
  };
  expect(sources.map(({ file }) => circleFrom(file, [])).filter((circle) => circle !== null)).toEqual([]);
});

describe('size and names', () => {
  const lines = sources.map(({ file, text }) => ({ file, count: text.split('\n').length }));

  test('no file is called utils, helpers, common or manager', () => {
    const vague = /(^|[-/])(utils?|helpers?|common|manager)([-.]|$)/;
    expect(sources.map(({ file }) => file).filter((file) => vague.test(file))).toEqual([]);
  });

  test('the median file is under 100 lines and none is over 300', () => {
    const sorted = lines.map(({ count }) => count).sort((a, b) => a - b);
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(100);
    expect(lines.filter(({ count }) => count > 301)).toEqual([]);
  });
});
