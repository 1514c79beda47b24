import { CompilePool } from '../../../origin/compiler/compile-pool.ts';
import { CompilerClient } from '../../../origin/compiler/compiler-client.ts';

/** An owner of compile processes for tests to kill. Compiles once, reports it, goes on as told. */

const [mode] = process.argv.slice(2);
const entry = new URL('./frail-compile-process.ts', import.meta.url);
const compiler =
  mode === 'hang'
    ? new CompilePool({ entry, processes: 1, timeLimitMs: 100, maxMs: 500 })
    : new CompilerClient();
await compiler.compile('{"type":"json_object"}', 'a');
console.log('compiled');
// On a busy machine the job may be refused before the owner is killed.
if (mode === 'hang') compiler.compile('{"defect":"hang"}', 'a').catch(() => {});
// An automaton of hundreds of thousands of states.
if (mode === 'slow') void compiler.compile('{"type":"regex","value":"(^|a)((b{60}){50}){50}($|c)"}', 'a');
