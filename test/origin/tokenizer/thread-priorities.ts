import { readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { TokenizerThread } from '../../../origin/tokenizer/tokenizer-thread.ts';

/** Starts a background thread for a tokenizer and prints the priorities of all threads of this process. */

const { parts } = Tokenizer.of(textsOf(process.argv[2]!));
const thread = new TokenizerThread({ parts, background: true });
const caller = { tenantId: 'a', signal: new AbortController().signal };
await thread.run({ kind: 'detokenize', tokens: [] }, caller);
console.log(JSON.stringify(readdirSync('/proc/self/task').map((id) => getPriority(Number(id)))));
await thread.close();
