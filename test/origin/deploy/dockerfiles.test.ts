import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Copy, DockerfileParser, From, type Instruction } from 'dockerfile-ast';
import { describe, expect, test } from 'vitest';
import { variables } from '../../../origin/config/config.ts';
import { bundledFolder } from '../../../origin/model/ort/ort-library.ts';
import originPackage from '../../../origin/package.json' with { type: 'json' };
import { fileOfPackage } from '../../support/source-graph.ts';

const at = (file: string) => path.resolve(import.meta.dirname, '../../..', file);
const read = (file: string) => readFileSync(at(file), 'utf8');
const wordsIn = (instruction: Instruction) => instruction.getArguments().map((word) => word.getValue());

/** The value of an exec-form CMD or HEALTHCHECK CMD. */
const execForm = (words: readonly string[]): unknown => JSON.parse(words.join(' ').replace(/^CMD /, ''));

/** Files that a program loads, itself included; not those that it imports when it needs them. */
function modulesOf(program: string): string[] {
  const loaded = new Set([program]);
  for (const file of loaded) {
    for (const { groups } of read(file).matchAll(
      /^(?:import|export)\s(?!type\s)[^;]*?'(?<name>(?:@continuo\/|\.)[^']+)';/gm,
    ))
      loaded.add(fileOfPackage(groups!.name!) ?? path.posix.join(path.posix.dirname(file), groups!.name!));
  }
  return [...loaded];
}

const PINNED = /^node:24[\d.]*-[a-z]+-slim@sha256:[0-9a-f]{64}$/;

test('all images have the same base', () => {
  const bases = ['Dockerfile', 'Dockerfile.cuda', 'Dockerfile.edge'].map(
    (name) => /^ARG NODE_IMAGE=(.*)$/m.exec(read(`origin/deploy/${name}`))?.[1],
  );
  expect(new Set(bases).size).toBe(1);
  expect(bases[0]).toMatch(PINNED);
});

test('the builder of the edge gets the settings by which the page is compiled', () => {
  const admitted = read('origin/deploy/Dockerfile.edge.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  for (const folder of ['shared', 'worker', 'worker/site', 'origin', 'origin/cli']) {
    const settings = JSON.parse(read(`${folder}/tsconfig.json`)) as { readonly extends: string };
    expect(admitted).toContain(path.posix.join(folder, settings.extends));
  }
});

describe.each(['Dockerfile', 'Dockerfile.cuda'])('%s', (name) => {
  const dockerfile = DockerfileParser.parse(read(`origin/deploy/${name}`));
  const initial = dockerfile.getInitialARGs();
  const instructions = dockerfile.getInstructions().slice(initial.length);
  const wordsOf = (keyword: string, from = instructions): string[][] =>
    from.filter((instruction) => instruction.getKeyword() === keyword).map(wordsIn);
  const stages = instructions.filter(
    (instruction): instruction is From => instruction.getKeyword() === 'FROM',
  );
  const last = instructions.slice(instructions.indexOf(stages.at(-1)!));

  const ignored = read(`origin/deploy/${name}.dockerignore`)
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  const excluded = ignored.filter((line) => !/^[*!]/.test(line));

  test('stages start from Node 24 on Debian, pinned by its digest, or from an earlier stage', () => {
    const defaults = new Map(
      initial.map((one) => [one.getProperty()?.getName(), one.getProperty()?.getValue()]),
    );
    const aliases = stages.map((stage) => stage.getBuildStage());
    const images = stages.map((stage) => stage.getImage()!).filter((image) => !aliases.includes(image));
    expect(images).toHaveLength(2);
    for (const image of images) expect(defaults.get(/^\$\{(\w+)\}$/.exec(image)![1])).toMatch(PINNED);
  });

  test('copied files exist and pass the ignore file, and excluded ones exist; copies name an existing stage', () => {
    const known = ['FROM', 'WORKDIR', 'COPY', 'RUN', 'ARG', 'ENV', 'USER', 'EXPOSE', 'HEALTHCHECK', 'CMD'];
    for (const instruction of instructions) expect(known).toContain(instruction.getKeyword());
    const copies = instructions.filter(
      (instruction): instruction is Copy => instruction.getKeyword() === 'COPY',
    );
    const [own, others] = [true, false].map((isOwn) =>
      copies.filter((copy) => (copy.getFromFlag() === null) === isOwn),
    );
    const sources = own!.flatMap((copy) => wordsIn(copy).slice(0, -1));
    expect(sources.length).toBeGreaterThan(4);
    expect(ignored[0]).toBe('*');
    expect(ignored).toEqual(expect.arrayContaining(sources.map((source) => `!${source}`)));
    expect([...sources, ...excluded].filter((file) => !existsSync(at(file)))).toEqual([]);
    const aliases = stages.map((stage) => stage.getBuildStage());
    for (const copy of others!) expect(aliases).toContain(copy.getFromFlag()?.getValue());
  });

  test('the image has the packages of the origin, and not the launcher', () => {
    const [run] = wordsOf('RUN');
    expect(run!.join(' ')).toContain(`npm ci --omit=dev --workspace ${originPackage.name} &&`);
    expect(excluded).toContain('origin/cli');
  });

  test.runIf(name === 'Dockerfile.cuda')(
    'the installer of CUDA runs on what its stage copies, and the origin finds what it installs',
    () => {
      const start = instructions.findIndex((one) => one instanceof From && one.getBuildStage() === 'cuda');
      const stage = instructions.slice(start + 1, instructions.indexOf(stages.at(-1)!));
      const copied = wordsOf('COPY', stage).map(([source]) => source!);
      const [, program, folder] = wordsOf('RUN', stage)[0]!;
      const loaded = modulesOf(program!);
      const isCopied = (file: string) => copied.some((one) => file === one || file.startsWith(`${one}/`));
      expect(loaded.filter((file) => !isCopied(file))).toEqual([]);
      const bundled = path.relative(at('.'), bundledFolder()).replace(/[^/]+\/[^/]+$/, 'linux/x64');
      expect(wordsOf('COPY', last)).toContainEqual([folder, bundled]);
    },
  );

  test('Node runs the origin directly, without root rights, so that it receives signals', () => {
    expect(last.slice(-4).map((one) => one.getKeyword())).toEqual(['USER', 'EXPOSE', 'HEALTHCHECK', 'CMD']);
    expect(wordsOf('USER', last)).toEqual([['1000:1000']]);
    expect(execForm(wordsOf('CMD', last)[0]!)).toEqual(['node', 'origin/main.ts']);
    expect(existsSync(at('origin/main.ts'))).toBe(true);
  });

  test('models can be fetched and built into the volume of models, and nowhere else', () => {
    expect(wordsOf('RUN', last).map((words) => words.join(' '))).toContain(
      'mkdir /models && chown 1000:1000 /models',
    );
    const environment = wordsOf('ENV', last).flat();
    expect(environment).toEqual(expect.arrayContaining(['HF_HOME=/models', 'XDG_CACHE_HOME=/models']));
  });

  test('the health check is a program in the image, and the ports are those of the origin', () => {
    expect(execForm(wordsOf('HEALTHCHECK', last)[0]!)).toEqual(['node', 'origin/deploy/health-check.ts']);
    expect(existsSync(at('origin/deploy/health-check.ts'))).toBe(true);
    const port = variables.shape.CONTINUO_ORIGIN_PORT.parse(undefined);
    expect(wordsOf('EXPOSE', last)).toEqual([[String(port), '9101']]);
  });

  test('the environment has known variables, no secrets, and the provider of the image', () => {
    const environment = wordsOf('ENV', last)
      .flat()
      .map((word) => word.split('='));
    const names = environment.map(([variable]) => variable!);
    expect(names.filter((one) => one.startsWith('CONTINUO_') && !(one in variables.shape))).toEqual([]);
    expect(names.filter((one) => /SECRET|TOKEN|KEY|PASSWORD/.test(one))).toEqual([]);
    const provider = Object.fromEntries(environment).CONTINUO_PROVIDER;
    expect(provider).toBe(name === 'Dockerfile.cuda' ? 'cuda' : undefined);
  });
});
