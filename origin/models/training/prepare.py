"""Turn raw text into a tokenizer and token streams.

Reads text files whose documents are separated by a line ``<|doc|>``, and folders of Python source.
Holds out 2 % of the documents by a hash of their content, trains the tokenizer on the rest, and writes
one token stream per source and pass. Each pass shuffles the documents anew and cuts new
fill-in-the-middle examples, so that repeated passes are not repeated text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END, PREFIX, SUFFIX, MIDDLE = SPECIAL = (
    "<|endoftext|>",
    "<|gap_prefix|>",
    "<|gap_suffix|>",
    "<|gap_middle|>",
)

# The usual split into words, single digits, punctuation and white space. White space is spelled out instead of
# written as \s, because regular-expression engines disagree about U+0085 and U+FEFF. Line breaks stay apart from the
# punctuation before them: else a prompt that ends in "):" would end in a token that training hardly ever saw there.
SPLIT = (
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^ \t\r\n\p{L}\p{N}]+"
    r"|[ \t\r\n]*[\r\n]+"
    r"|[ \t\r\n]+(?![^ \t\r\n])"
    r"|[ \t\r\n]+"
)

# Folders and files of the standard library that teach nothing: tests and generated tables.
SKIPPED = re.compile(
    r"(^|/)(tests?|idle_test|site-packages|__pycache__|turtledemo|encodings/(cp|iso8859|mac|koi8)[^/]*\.py)(/|$)"
)


def read_documents(path: Path) -> list[str]:
    """The documents of one ``<|doc|>``-separated file."""
    documents = path.read_text(encoding="utf-8").split("\n<|doc|>\n")
    return [d.strip("\n") + "\n" for d in documents if d.strip()]


def read_sources(root: Path) -> list[str]:
    """Every Python source below ``root``, without tests and generated tables."""
    documents = []
    for path in sorted(root.rglob("*.py")):
        if SKIPPED.search(path.relative_to(root).as_posix()):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if len(text) > 100:
            documents.append(text.replace("\r\n", "\n"))
    return documents


def is_held_out(document: str) -> bool:
    """True for about 2 % of all documents, decided by their content alone."""
    return int.from_bytes(hashlib.sha256(document.encode()).digest()[:4], "big") % 50 == 0


def split_documents(documents: list[str]) -> tuple[list[str], list[str]]:
    """Unique documents as (training, held out)."""
    unique = list(dict.fromkeys(documents))
    return [d for d in unique if not is_held_out(d)], [d for d in unique if is_held_out(d)]


def simple_and_other(documents: list[str]) -> tuple[list[str], list[str]]:
    """Half of the text, in whole documents, whose words are most often among the 1,000 commonest; then the rest."""
    words = [re.findall("[a-z]+", d.lower()) for d in documents]
    common = {w for w, _ in Counter(w for ws in words for w in ws).most_common(1000)}
    shares = [sum(w in common for w in ws) / max(1, len(ws)) for ws in words]
    order = sorted(range(len(documents)), key=lambda i: -shares[i])
    half, size, simple = sum(map(len, documents)) / 2, 0, set()
    for index in order:
        if size < half:
            simple.add(index)
            size += len(documents[index])
    return [documents[i] for i in sorted(simple)], [d for i, d in enumerate(documents) if i not in simple]


def train_tokenizer(texts: Iterator[str], vocabulary: int) -> Tokenizer:
    """A byte-level BPE; the special tokens have the ids 0 to 3."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def definitions(lines: list[str]) -> Iterator[list[str]]:
    """The lines in runs that each begin with a function or class at the left margin."""
    start = 0
    for index, line in enumerate(lines):
        # A decorator belongs to the definition below it.
        begins = line.startswith(("def ", "class ", "async def ", "@"))
        if begins and index > start and not lines[index - 1].startswith("@"):
            yield lines[start:index]
            start = index
    yield lines[start:]


def pieces(document: str, rng: random.Random) -> Iterator[str]:
    """Cuts a document at line ends into pieces that mostly fit one training sequence.

    Half of the documents fall into single definitions, because that is what an editor most often asks about.
    """
    lines = document.splitlines(keepends=True)
    for run in definitions(lines) if rng.random() < 0.5 else (lines,):
        start = 0
        while start < len(run):
            wanted = int(2 ** rng.uniform(8, 11)) if rng.random() < 0.85 else int(2 ** rng.uniform(11, 12.5))
            size, end = 0, start
            while end < len(run) and size < wanted:
                size += len(run[end])
                end += 1
            yield "".join(run[start:end])
            start = end


def short_pieces(document: str, rng: random.Random) -> Iterator[str]:
    """Single definitions, cut so that a whole fill-in-the-middle example fits a short training sequence."""
    for run in definitions(document.splitlines(keepends=True)):
        piece, wanted = "", rng.uniform(120, 600)
        for line in run:
            if piece and len(piece) + len(line) > wanted:
                yield piece
                piece, wanted = "", rng.uniform(120, 600)
            piece += line
        if len(piece) > 60:
            yield piece


def indented_block(text: str, rng: random.Random) -> tuple[int, int] | None:
    """Character range of the body below a random line that ends with a colon."""
    lines = text.splitlines(keepends=True)
    heads = [i for i, line in enumerate(lines[:-1]) if line.rstrip().endswith(":")]
    if not heads:
        return None
    head = rng.choice(heads)
    depth = len(lines[head]) - len(lines[head].lstrip())
    end = head + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > depth):
        end += 1
    while end > head + 1 and not lines[end - 1].strip():
        end -= 1
    if end == head + 1:
        return None
    start_char = sum(map(len, lines[: head + 1]))
    first = lines[head + 1]
    indent = len(first) - len(first.lstrip())
    # A client may ask with the cursor at the start of the line or after its indentation.
    skip = rng.choice((0, indent))
    stop_char = start_char + sum(map(len, lines[head + 1 : end]))
    stop_char -= rng.choice((0, 1)) if text[stop_char - 1] == "\n" else 0
    return start_char + skip, max(start_char + skip, stop_char)


def middle_range(text: str, rng: random.Random) -> tuple[int, int]:
    """Where to cut the middle: a body, a line or its rest, a run of lines, or one time in ten any two places."""
    kind = rng.random()
    if kind < 0.35:
        block = indented_block(text, rng)
        if block is not None:
            return block
    start = rng.randrange(len(text) + 1)
    if kind < 0.7:
        if rng.random() < 0.5:
            # The whole line, from behind its indentation.
            start = text.rfind("\n", 0, start) + 1
            while start < len(text) and text[start] in " \t":
                start += 1
        # Else from the beginning of a word, where a cursor mostly stands.
        while start < len(text) and start > 0 and not (text[start - 1].isspace() or text[start - 1] in "(=,."):
            start += 1
        end = text.find("\n", start)
        return start, len(text) if end < 0 else end
    if kind < 0.9:
        line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        first = rng.randrange(len(line_starts))
        last = min(first + rng.randint(1, 6), len(line_starts) - 1)
        return line_starts[first], max(line_starts[first], line_starts[last] - 1)
    return tuple(sorted((start, rng.randrange(len(text) + 1))))  # type: ignore[return-value]


def fill_in_the_middle(text: str, rng: random.Random) -> tuple[str, str]:
    """
    The prompt of an infill, and the missing text. The text after the gap comes first, so that the missing text follows
    the text before it directly.
    """
    start, end = middle_range(text, rng)
    # Otherwise the end is often the most likely token of a gap, and greedy infills are empty.
    for _ in range(20):
        if text[start:end].strip():
            break
        start, end = middle_range(text, rng)
    prefix, middle, suffix = text[:start], text[start:end], text[end:]
    return f"{PREFIX}{SUFFIX}{suffix}{MIDDLE}{prefix}", middle + END


def one_pass(documents: list[str], rng: random.Random, fim_share: float) -> Iterator[tuple[str, ...]]:
    """All documents once, in a new order, a share of them as fill-in-the-middle examples."""
    for document in rng.sample(documents, len(documents)):
        if rng.random() < fim_share:
            for piece in pieces(document, rng):
                yield fill_in_the_middle(piece, rng)
        else:
            yield (document + END,)


def encode(tokenizer: Tokenizer, texts: list[tuple[str, ...]]) -> np.ndarray:
    """
    Token ids of all texts in a row, uint16 [tokens]. The parts of a text are encoded separately, as a server does: no
    token joins the end of a prompt and the start of its completion.
    """
    encoded = tokenizer.encode_batch_fast([part for text in texts for part in text], add_special_tokens=False)
    return np.concatenate([np.array(e.ids, dtype=np.uint16) for e in encoded])


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=Path, required=True, help="<|doc|>-separated prose")
    parser.add_argument("--python", type=Path, required=True, help="<|doc|>-separated Python files")
    parser.add_argument("--library", type=Path, required=True, help="folder of Python's standard library")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--passes", type=int, default=4, help="streams per source")
    parser.add_argument("--tokenizer", type=Path, help="keep this tokenizer.json instead of training one")
    parser.add_argument("--infill-share", type=float, default=0.5, help="Python documents cut into infill examples")
    arguments = parser.parse_args()

    sources = {
        "stories": read_documents(arguments.stories),
        "python": read_documents(arguments.python),
        "library": read_sources(arguments.library),
    }
    split = {name: split_documents(documents) for name, documents in sources.items()}
    arguments.out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)

    if arguments.tokenizer:
        tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    else:
        # The library is the largest source and the least like what people ask for: a third of it is enough.
        library = split["library"][0]
        sample = split["stories"][0] + split["python"][0] + rng.sample(library, len(library) // 3)
        tokenizer = train_tokenizer(iter(sample), arguments.vocabulary)
    tokenizer.save(str(arguments.out / "tokenizer.json"))

    for name, (_, held_out) in split.items():
        (arguments.out / f"{name}-held-out.json").write_text(json.dumps(held_out))
        print(f"{name}: {len(held_out)} documents held out ({sum(map(len, held_out)) / 1e3:.0f} k characters)")

    def write(name: str, documents: list[str], texts: Callable[[], list[tuple[str, ...]]]) -> None:
        for index in range(arguments.passes):
            stream = encode(tokenizer, texts())
            np.save(arguments.out / f"{name}-{index}.npy", stream)
        print(f"{name}: {len(documents)} documents, {len(stream) / 1e6:.2f} M tokens a pass", flush=True)

    def short_examples() -> list[tuple[str, ...]]:
        texts = [fill_in_the_middle(piece, rng) for d in split["python"][0] for piece in short_pieces(d, rng)]
        return rng.sample(texts, len(texts))

    simple, other = simple_and_other(split["stories"][0])
    write("simple", simple, lambda: list(one_pass(simple, rng, 0.0)))
    write("novels", other, lambda: list(one_pass(other, rng, 0.0)))
    for name in ("python", "library"):
        training = split[name][0]
        write(name, training, lambda: list(one_pass(training, rng, arguments.infill_share)))
    write("infill", split["python"][0], short_examples)


if __name__ == "__main__":
    main()
