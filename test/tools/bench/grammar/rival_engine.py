"""Judges JSON Schemas with llguidance or xgrammar, for test/tools/bench/grammar/rival-engine.ts. One JSON line in, one out."""

import base64
import json
import sys
import time


class Llguidance:
    def __init__(self, tokens, end, special, style):
        import llguidance
        import llguidance.numpy

        class Tokens:
            eos_token_id, bos_token_id, special_token_ids = end, None, special

            def __call__(self, text):
                return [BYTE_TOKENS[byte] for byte in text]

        Tokens.tokens = tokens
        self.library, self.numpy = llguidance, llguidance.numpy
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self.bitmask = self.numpy.allocate_token_bitmask(1, len(tokens))

    def compile(self, schema):
        self.matcher = self.library.LLMatcher(self.tokenizer, self.library.LLMatcher.grammar_from_json_schema(schema))
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())

    def restart(self):
        self.matcher.reset()

    def mask(self):
        self.numpy.fill_next_token_bitmask(self.matcher, self.bitmask)

    def accept(self, token):
        return self.matcher.try_consume_tokens([token]) == 1

    def is_complete(self):
        return self.matcher.is_accepting()


class Xgrammar:
    def __init__(self, tokens, end, special, style):
        import xgrammar

        self.library, self.end = xgrammar, end
        self.style = {"strict_mode": not style["openObjects"], "any_order": style["anyKeyOrder"]}
        information = xgrammar.TokenizerInfo(tokens, stop_token_ids=[end])
        self.compiler = xgrammar.GrammarCompiler(information, max_threads=1, cache_enabled=False)
        self.bitmask = xgrammar.allocate_token_bitmask(1, len(tokens))

    def compile(self, schema):
        self.grammar = self.compiler.compile_json_schema(schema, **self.style)
        self.restart()

    def restart(self):
        self.matcher = self.library.GrammarMatcher(self.grammar)

    def mask(self):
        self.matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, token):
        return self.matcher.accept_token(token)

    def is_complete(self):
        return self.matcher.accept_token(self.end)


def accepts(engine, text):
    engine.restart()
    return all(engine.accept(BYTE_TOKENS[byte]) for byte in text) and engine.is_complete()


def mask_times(engine, text):
    engine.restart()
    times = []
    for byte in text:
        begun = time.perf_counter()
        engine.mask()
        times.append(1000 * (time.perf_counter() - begun))
        engine.accept(BYTE_TOKENS[byte])
    return times


def judge(engine, schema, texts):
    begun = time.perf_counter()
    try:
        engine.compile(schema)
        engine.mask()
    except Exception as error:
        return {"compileMs": 1000 * (time.perf_counter() - begun), "refused": str(error)[:200]}
    compile_ms = 1000 * (time.perf_counter() - begun)
    accepted = [accepts(engine, text) for text in texts]
    first = next((text for text, is_accepted in zip(texts, accepted) if is_accepted), b"")
    return {"compileMs": compile_ms, "accepted": accepted, "maskMs": mask_times(engine, first)}


ENGINES = {"llguidance": Llguidance, "xgrammar": Xgrammar}
start = json.loads(sys.stdin.readline())
TOKENS = [base64.b64decode(token) for token in start["tokens"]]
BYTE_TOKENS = {token[0]: id for id, token in reversed(list(enumerate(TOKENS))) if len(token) == 1}
engine = ENGINES[start["engine"]](TOKENS, start["end"], start["special"], start["style"])
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    print(json.dumps(judge(engine, job["schema"], [text.encode() for text in job["texts"]])), flush=True)
