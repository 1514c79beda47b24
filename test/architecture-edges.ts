import { words } from '../shared/field-names.ts';

/**
 * The folders of the map in docs/architecture.md that each of them may import: an edge that is not listed
 * fails test/architecture.test.ts. Add an edge only with a reason in the commit that adds it.
 */
export const ALLOWED_EDGES: Readonly<Record<string, readonly string[]>> = {
  origin: words(`
    origin/config origin/http origin/model/ort origin/process origin/request origin/serving shared
  `),
  'origin/cli': words(`
    origin origin/config origin/cuda origin/http origin/hub origin/hub/check
    origin/hub/fetch origin/hub/prepare origin/model/config origin/model/device origin/process origin/serving
    origin/terminal shared worker/env worker/site/build worker/upstreams
  `),
  'origin/compiler': words(`
    origin/grammar origin/grammar/program origin/grammar/rules origin/process shared
  `),
  'origin/config': words('origin/infill origin/model/config shared'),
  'origin/cuda': words('origin/config origin/hub/fetch origin/model/device origin/model/ort origin/terminal'),
  'origin/deploy': words('origin/config'),
  'origin/engine': words('origin/engine/kv origin/sampling shared'),
  'origin/engine/kv': words('origin/engine/scheduling origin/model origin/sampling shared'),
  'origin/engine/runs': words(`
    origin/engine origin/engine/kv origin/engine/scheduling origin/engine/sequences origin/engine/state
    origin/grammar origin/grammar/runtime origin/model origin/sampling origin/tokenizer shared
  `),
  'origin/engine/scheduling': words('origin/model shared'),
  'origin/engine/sequences': words(`
    origin/engine origin/engine/kv origin/engine/scheduling origin/engine/text origin/grammar
    origin/grammar/runtime origin/model origin/sampling origin/tokenizer shared
  `),
  'origin/engine/state': words(`
    origin/engine origin/engine/kv origin/engine/scheduling origin/engine/sequences
  `),
  'origin/engine/text': words('origin/grammar/runtime origin/sampling origin/tokenizer shared'),
  'origin/engine/thread': words(`
    origin/compiler origin/engine origin/engine/kv origin/engine/runs origin/grammar/runtime origin/model
    origin/model/config origin/model/open origin/model/ort origin/model/runner origin/process
    origin/sampling origin/tokenizer shared
  `),
  'origin/export': words(`
    origin/export/checkpoint origin/export/design origin/export/families origin/export/gguf
    origin/export/graph origin/export/precision origin/model/config
  `),
  'origin/export/checkpoint': words('origin/export/design origin/model/config shared'),
  'origin/export/families': words('origin/export/design origin/model/config shared'),
  'origin/export/gguf': words(`
    origin/export/checkpoint origin/export/design origin/export/families origin/model/config shared
  `),
  'origin/export/graph': words(`
    origin/export/checkpoint origin/export/design origin/export/precision origin/model/config
    origin/model/onnx shared
  `),
  'origin/export/precision': words('origin/export/checkpoint'),
  'origin/grammar': words(`
    origin/grammar/automaton origin/grammar/gbnf origin/grammar/json-schema origin/grammar/lark
    origin/grammar/program origin/grammar/regex origin/grammar/rules shared
  `),
  'origin/grammar/gbnf': words('origin/grammar/automaton origin/grammar/rules'),
  'origin/grammar/json-schema': words(`
    origin/grammar/automaton origin/grammar/regex origin/grammar/rules shared
  `),
  'origin/grammar/lark': words(`
    origin/grammar/automaton origin/grammar/json-schema origin/grammar/regex origin/grammar/rules
  `),
  'origin/grammar/program': words('origin/grammar/automaton origin/grammar/rules'),
  'origin/grammar/regex': words('origin/grammar/automaton origin/grammar/rules'),
  'origin/grammar/rules': words('origin/grammar/automaton shared'),
  'origin/grammar/runtime': words(`
    origin/grammar/automaton origin/grammar/program origin/grammar/rules shared
  `),
  'origin/http': words('origin/engine origin/engine/kv origin/process origin/request origin/serving shared'),
  'origin/hub': words(`
    origin/config origin/hub/check origin/hub/fetch origin/hub/prepare origin/model/config origin/terminal
  `),
  'origin/hub/check': words(`
    origin/config origin/engine/scheduling origin/hub/fetch origin/infill origin/model origin/model/config
    origin/model/open origin/sampling origin/serving origin/tokenizer
  `),
  'origin/hub/fetch': words(`
    origin/config origin/export/checkpoint origin/export/graph origin/model/config origin/terminal shared
  `),
  'origin/hub/prepare': words(`
    origin/config origin/export origin/export/checkpoint origin/export/families origin/export/graph
    origin/hub/fetch origin/model/config origin/model/open origin/terminal origin/tokenizer
  `),
  'origin/images': words('origin/engine origin/model/config origin/process shared'),
  'origin/infill': words('origin/tokenizer'),
  // The engine as a library: the parts of an engine thread and of a request, in one thread.
  'origin/local': words(`
    origin/engine origin/engine/runs origin/grammar origin/grammar/runtime origin/infill origin/model/web
    origin/request origin/sampling origin/tokenizer shared
  `),
  'origin/model/config': words('shared'),
  'origin/model/decoder': words('origin/model/config origin/model/onnx'),
  'origin/model/device': words('origin/model/config origin/model/onnx origin/model/ort shared'),
  'origin/model/foreign': words(`
    origin/model origin/model/config origin/model/decoder origin/model/onnx origin/model/ort origin/model/runner
  `),
  'origin/model/onnx': words('shared'),
  'origin/model/open': words(`
    origin/model origin/model/config origin/model/decoder origin/model/device origin/model/foreign
    origin/model/onnx origin/model/ort origin/model/runner origin/model/vision origin/process shared
  `),
  'origin/model/ort': words('origin/model origin/model/config origin/model/onnx origin/process shared'),
  'origin/model/runner': words(`
    origin/model origin/model/config origin/model/decoder origin/model/onnx origin/model/ort shared
  `),
  'origin/model/vision': words(`
    origin/model/config origin/model/decoder origin/model/onnx origin/model/ort origin/model/runner
  `),
  // The same runner and probes as on a server, over another session.
  'origin/model/web': words(`
    origin/model origin/model/config origin/model/decoder origin/model/onnx origin/model/open
    origin/model/ort origin/model/runner shared
  `),
  'origin/process': words('shared'),
  'origin/request': words(`
    origin/engine origin/engine/kv origin/engine/sequences origin/engine/text origin/images origin/infill
    origin/process origin/tokenizer shared
  `),
  'origin/sampling': words('origin/model origin/tokenizer shared'),
  'origin/serving': words(`
    origin/config origin/engine origin/engine/kv origin/engine/thread origin/images origin/infill
    origin/model/config origin/model/open origin/process origin/request origin/tokenizer shared
  `),
  'origin/terminal': words('shared'),
  'origin/tokenizer': words('origin/grammar/automaton origin/model/config origin/process shared'),
  worker: words(`
    shared worker/account worker/admin worker/auth worker/batches worker/delivery worker/dialects worker/env
    worker/files worker/generation worker/http worker/limits worker/limits/objects worker/limits/usage
    worker/operations worker/prices worker/replay worker/score worker/tenants worker/timers worker/upstreams
  `),
  // Records of requests, and their names, are in worker/limits/usage.
  'worker/account': words(`
    shared worker/admin worker/http worker/limits worker/limits/quota worker/limits/usage worker/operations
    worker/tenants
  `),
  // Erasing a tenant reaches its batches and files.
  'worker/admin': words(`
    shared worker/auth worker/batches worker/delivery worker/env worker/files worker/http worker/limits
    worker/limits/quota worker/limits/usage worker/operations worker/prices worker/tenants worker/timers
    worker/upstreams
  `),
  'worker/auth': words('shared worker/dialects worker/http worker/tenants'),
  // A batch's lines come from its input file, and its results become files.
  'worker/batches': words('shared worker/dialects worker/env worker/files worker/http worker/operations'),
  'worker/dialects': words('shared'),
  'worker/delivery': words('shared worker/env worker/limits/usage worker/tenants'),
  'worker/env': words('shared worker/limits'),
  // Places for files, uploads and batches are taken at the tenant's object.
  'worker/files': words('shared worker/dialects worker/http worker/limits worker/operations'),
  'worker/generation': words(`
    shared worker/dialects worker/http worker/limits worker/limits/usage worker/prices worker/timers
    worker/upstreams
  `),
  'worker/http': words(`
    shared worker/dialects worker/env worker/limits worker/prices worker/tenants worker/timers
    worker/upstreams
  `),
  'worker/limits': words('shared worker/limits/quota worker/limits/usage'),
  'worker/limits/objects': words('shared worker/limits worker/limits/quota worker/limits/usage'),
  'worker/limits/quota': words('shared worker/limits/usage'),
  'worker/limits/usage': words('shared'),
  // An operation authenticates its caller, parses its input, and has its limit headers and replays.
  'worker/operations': words(`
    shared worker/auth worker/dialects worker/http worker/limits worker/limits/quota worker/replay
    worker/tenants
  `),
  'worker/prices': words('shared worker/limits/usage worker/tenants'),
  'worker/replay': words('shared worker/auth worker/dialects worker/env worker/http worker/timers'),
  'worker/score': words('shared worker/dialects worker/generation'),
  'worker/site': words('worker/site/playground worker/site/shell worker/site/store'),
  'worker/site/account': words(`
    shared worker/site/api worker/site/controls worker/site/copy worker/site/playground worker/site/store
  `),
  'worker/site/api': words('shared'),
  'worker/site/build': words('shared worker/dialects worker/site/api worker/site/docs'),
  'worker/site/compare': words(`
    worker/site/api worker/site/controls worker/site/copy worker/site/playground worker/site/score
    worker/site/store worker/site/tokens
  `),
  // The device that the engine has chosen, as a type.
  'worker/site/local': words('origin/local worker/site/api worker/site/controls worker/site/store'),
  // Requests are read and answered by the Worker's code, and run by the engine.
  'worker/site/local/thread': words(`
    origin/local shared worker/dialects worker/generation worker/site/local
  `),
  'worker/site/constraint': words(`
    worker/site/api worker/site/controls worker/site/editor worker/site/store
  `),
  'worker/site/copy': words('shared worker/site/api worker/site/controls worker/site/store'),
  'worker/site/docs': words(`
    worker/site/api worker/site/controls worker/site/copy worker/site/shell worker/site/store
  `),
  'worker/site/editor': words('worker/site/store worker/site/tokens'),
  'worker/site/operator': words('worker/site/account worker/site/controls'),
  'worker/site/playground': words(`
    worker/site/api worker/site/constraint worker/site/controls worker/site/copy worker/site/editor
    worker/site/store worker/site/tokens
  `),
  'worker/site/score': words(`
    shared worker/site/api worker/site/controls worker/site/playground worker/site/store
  `),
  'worker/site/shell': words(`
    worker/site/account worker/site/compare worker/site/controls worker/site/local worker/site/operator
    worker/site/playground worker/site/store worker/site/tree
  `),
  'worker/site/store': words('worker/site/api'),
  'worker/site/tokens': words('shared worker/site/api worker/site/controls worker/site/store'),
  'worker/site/tree': words(`
    shared worker/site/api worker/site/controls worker/site/copy worker/site/playground worker/site/store
    worker/site/tokens
  `),
  'worker/tenants': words('shared'),
  'worker/timers': words('shared'),
  // The list of upstreams is read from any copy of the database, and its changes are in the audit log.
  'worker/upstreams': words('shared worker/env worker/tenants worker/timers'),
};
