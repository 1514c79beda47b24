import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { CompilePool } from '../../../origin/compiler/compile-pool.ts';
import { CompilerClient } from '../../../origin/compiler/compiler-client.ts';
import { childrenOf, untilBusy, untilEnded } from '../../support/child-processes.ts';

/** Grammars that crash the compiler, in real processes. Tests that read /proc run on Linux only. */

const entry = new URL('../../support/grammar/frail-compile-process.ts', import.meta.url);
const JSON_OBJECT = JSON.stringify({ type: 'json_object' });
const SLOW = JSON.stringify({ type: 'regex', value: '(^|a)((b{60}){50}){50}($|c)' });
const defect = (name: string, argument = '') => JSON.stringify({ defect: name, with: argument });
const DIED = { code: 'upstream_error', status: 502 };
const REFUSED = { code: 'invalid_grammar', status: 400 };
const BUSY = { code: 'server_is_overloaded', status: 503 };

/** CPU time of grammars that hang. */
const LIMIT_MS = 500;
/** Practically no limit. */
const AMPLE_MS = 110_000;
const AMPLE = { timeLimitMs: AMPLE_MS, maxMs: AMPLE_MS, maxWaitMs: AMPLE_MS };

describe('a grammar that crashes its compile process', () => {
  const frail = new CompilePool({ processes: 1, ...AMPLE, timeLimitMs: LIMIT_MS, entry });
  const roomy = new CompilePool({ processes: 1, ...AMPLE, entry });
  afterAll(() => Promise.all([frail.close(), roomy.close()]));

  it.each([
    ['hangs', frail, defect('hang'), REFUSED, /more than 0.5 s/],
    ['throws', roomy, defect('die'), { name: 'Error' }, /^The compiler failed/],
    ['exits', roomy, defect('exit'), DIED, /stopped unexpectedly/],
    ['is killed', roomy, defect('signal', 'SIGKILL'), DIED, /stopped unexpectedly/],
    ['breaks the process', roomy, defect('signal', 'SIGSEGV'), DIED, /stopped unexpectedly/],
    ['fills the heap', roomy, defect('objects'), REFUSED, /too much memory/],
    ['fills the heap with one array', roomy, defect('array'), REFUSED, /too much memory/],
  ])('fails without affecting the next grammar if it %s', async (_how, compiler, wire, error, message) => {
    const expected = { ...error, message: expect.stringMatching(message) };
    await expect(compiler.compile(wire, 'a')).rejects.toMatchObject(expected);
    expect((await compiler.compile(JSON_OBJECT, 'a')).ruleOf.length).toBeGreaterThan(0);
  });

  it.runIf(process.platform === 'linux')('gets limited memory outside the heap', async () => {
    const error = await roomy.compile(defect('typed'), 'a').catch((thrown) => thrown);
    expect(error).toMatchObject(REFUSED);
    expect(Number.parseInt(error.message, 10)).toBeGreaterThan(2);
    expect(Number.parseInt(error.message, 10)).toBeLessThan(24);
  });

  it.runIf(process.platform === 'linux')(
    'is charged only the CPU time of its process, and must be sent again if it gets too little for too long',
    async () => {
      const patient = new CompilePool({ processes: 1, ...AMPLE, timeLimitMs: 200, entry });
      expect((await patient.compile(defect('pause', '600'), 'a')).ruleOf.length).toBeGreaterThan(0);
      const hurried = new CompilePool({ processes: 1, ...AMPLE, maxMs: 100, entry });
      await expect(hurried.compile(defect('pause', '600000'), 'a')).rejects.toMatchObject(BUSY);
      await Promise.all([patient.close(), hurried.close()]);
    },
  );

  it('has no access to the environment', async () => {
    process.env.TEST_SECRET = 'seen';
    const fresh = new CompilePool({ processes: 1, ...AMPLE, entry });
    // A shell sets its directory.
    await expect(fresh.compile(defect('environment'), 'a')).rejects.toThrow(
      /^names:( (PWD|OLDPWD|SHLVL|_))*\s*$/,
    );
    await fresh.close();
    delete process.env.TEST_SECRET;
  });

  it('does not affect other grammars in any order', async () => {
    const expected = {
      fine: { wire: JSON_OBJECT, code: null },
      wrong: { wire: JSON.stringify({ type: 'gbnf', value: 'root ::= (' }), code: 'invalid_grammar' },
      slow: { wire: defect('hang'), code: 'invalid_grammar' },
      exits: { wire: defect('exit'), code: 'upstream_error' },
      killed: { wire: defect('signal', 'SIGKILL'), code: 'upstream_error' },
    } as const;
    const kinds = Object.keys(expected) as (keyof typeof expected)[];
    // Slow jobs run to the time limit, so there are few.
    const kind = fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom(...kinds.filter((one) => one !== 'slow')) },
      { weight: 1, arbitrary: fc.constant('slow' as const) },
    );
    const job = fc.record({ kind, tenant: fc.constantFrom('a', 'b', 'c') });
    const all = kinds.map((one, at) => ({ kind: one, tenant: 'abc'.charAt(at % 3) }));
    const compiler = new CompilePool({ ...AMPLE, timeLimitMs: LIMIT_MS, entry });
    const run = async (jobs: readonly { kind: keyof typeof expected; tenant: string }[]) => {
      const outcomes = await Promise.all(
        jobs.map(({ kind, tenant }) =>
          compiler.compile(expected[kind].wire, tenant).then(
            () => null,
            ({ code }) => code,
          ),
        ),
      );
      expect(outcomes).toEqual(jobs.map(({ kind }) => expected[kind].code));
    };
    await fc.assert(fc.asyncProperty(fc.array(job, { maxLength: 6 }), run), {
      numRuns: 4,
      examples: [[all], [all.toReversed()]],
      endOnFailure: true,
    });
    await compiler.close();
  });
});

describe('the compile server', () => {
  it('restarts for the next grammar after it dies, and only running jobs fail', async () => {
    const client = new CompilerClient();
    await client.compile(JSON_OBJECT, 'a');
    const slow = client.compile(SLOW, 'a');
    process.kill(client.pid as number, 'SIGKILL');
    await expect(slow).rejects.toMatchObject(DIED);
    expect((await client.compile(JSON_OBJECT, 'a')).ruleOf.length).toBeGreaterThan(0);
    await client.close();
    await expect(client.compile(JSON_OBJECT, 'a')).rejects.toMatchObject({ status: 503 });
  });

  it('passes on errors with code, message and field', async () => {
    const client = new CompilerClient();
    const wire = JSON.stringify({ type: 'gbnf', value: 'root ::= (' });
    await expect(client.compile(wire, 'a')).rejects.toMatchObject({ ...REFUSED, param: 'grammar' });
    await client.close();
  });

  it('fails running jobs when it is closed', async () => {
    const client = new CompilerClient();
    const pending = client.compile(SLOW, 'a');
    const outcome = expect(pending).rejects.toMatchObject({ status: 503 });
    await client.close();
    await outcome;
  });

  it.runIf(process.platform === 'linux')(
    'runs its processes at low priority and ignores termination signals',
    async () => {
      const client = new CompilerClient();
      await client.compile(JSON_OBJECT, 'a');
      const server = client.pid as number;
      const compilers = childrenOf(server);
      // Long enough that each process gets a job and has started.
      const long = JSON.stringify({ type: 'choice', value: Array.from({ length: 3000 }, (_, i) => `w${i}`) });
      await Promise.all(['b', 'c'].map((tenant) => client.compile(long, tenant)));
      const threads = compilers.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map(Number));
      // 19 is the lowest priority.
      const low = Math.min(19, getPriority(server) + 10);
      expect(new Set(threads.map((thread) => getPriority(thread)))).toEqual(new Set([low]));
      for (const pid of [server, ...compilers]) {
        for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(pid, signal);
      }
      await Promise.all(['a', 'b'].map((tenant) => client.compile(JSON_OBJECT, tenant)));
      expect(client.pid).toBe(server);
      expect(childrenOf(server)).toEqual(compilers);
      await client.close();
      await Promise.all(compilers.map(untilEnded));
    },
  );
});

describe.runIf(process.platform === 'linux')('compile processes whose owner ends', () => {
  const script = fileURLToPath(new URL('../../support/grammar/compile-owner.ts', import.meta.url));
  const start = async (mode: string): Promise<ChildProcess> => {
    const owner = spawn(process.execPath, [script, mode], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(owner.stdout as NodeJS.EventEmitter, 'data');
    return owner;
  };

  it('end if the owner is killed, even during a hanging job', async () => {
    const owner = await start('hang');
    const [compiler] = childrenOf(owner.pid as number) as [number];
    await untilBusy(compiler);
    owner.kill('SIGKILL');
    await untilEnded(compiler);
  });

  it('end if the owner is killed, including the server and a busy process', async () => {
    const owner = await start('slow');
    const [server] = childrenOf(owner.pid as number) as [number];
    const compilers = childrenOf(server);
    expect(compilers).toHaveLength(2);
    await Promise.race(compilers.map(untilBusy));
    owner.kill('SIGKILL');
    await Promise.all([server, ...compilers].map(untilEnded));
  });

  it('do not keep an idle owner alive', async () => {
    const owner = await start('idle');
    expect(await once(owner, 'exit')).toEqual([0, null]);
  });
});
