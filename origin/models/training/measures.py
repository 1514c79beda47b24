"""What evaluate.py measures: bits per byte, missing lines, loops and invented words."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

from exported import Exported, Sampling
from prepare import END, MIDDLE, PREFIX, SUFFIX

# The settings that the documentation recommends for stories.
STORY_SAMPLING = Sampling(temperature=0.8, min_p=0.05, repetition_penalty=1.1)

# Lower-case words only, because a capital may begin a name; a part of a word at either end of the text is left out.
WORD = re.compile(r"(?<=[\s\"(—-])[a-z]+(?:'[a-z]+)?(?=[\s.,;:!?\")—-])")


def bits_per_byte(model: Exported, documents: list[str], context: int) -> float:
    """Windows of ``context`` tokens overlap by half, so that a token in a later window sees at least half of it."""
    total, size = 0.0, 0
    for document in documents:
        ids = model.encode(END + document + END)
        size += len(document.encode())
        scored = 1
        for start in range(0, max(1, len(ids) - context // 2), context // 2):
            window = ids[start : start + context]
            total += float(model.bits(window)[scored - start - 1 :].sum())
            scored = start + len(window)
    return total / size


def gaps(documents: list[str], count: int) -> Iterator[tuple[str, str, str]]:
    """(text before, line, text after) of random lines with a letter; the text before ends behind the indentation."""
    rng = random.Random(1)
    lines = [
        (document, match.start(1), match.end(1))
        for document in documents
        for match in re.finditer(r"^[ \t]*(\S.*[A-Za-z].*)$", document, re.MULTILINE)
    ]
    for document, start, end in rng.sample(lines, count):
        before, after = document[:start], document[end:]
        if len(before) > 1000:
            before = before[before.index("\n", len(before) - 1000) + 1 :]
        yield before, document[start:end], after[: after.find("\n", 500) + 1 or None]


def infill_share(model: Exported, documents: list[str], count: int) -> float:
    """Share of ``count`` missing lines that greedy decoding restores exactly, trailing space aside."""
    exact = 0
    for before, line, after in gaps(documents, count):
        ids = model.complete(f"{PREFIX}{SUFFIX}{after}{MIDDLE}{before}", 80, Sampling(), stop="\n")
        exact += model.decode(ids).split("\n")[0].rstrip() == line.rstrip()
    return exact / count


def story_prompts(documents: list[str], count: int) -> Iterator[str]:
    """Random stretches of about 300 characters that end with a word."""
    rng = random.Random(1)
    for _ in range(count):
        document = rng.choice(documents)
        end = rng.randrange(300, len(document) - 20)
        end = next(match.start() for match in re.finditer(r"\s|$", document[end:])) + end
        yield document[max(0, end - 300) : end]


def loops(ids: list[int], size: int = 6, times: int = 3) -> bool:
    """Whether any ``size`` tokens in a row occur ``times`` times."""
    grams = Counter(tuple(ids[i : i + size]) for i in range(len(ids) - size + 1))
    return max(grams.values(), default=0) >= times


def invented_share(texts: list[str], dictionary: set[str]) -> float:
    """Share of the lower-case words that the dictionary lacks, with and without a possessive ending."""
    words = [word for text in texts for word in WORD.findall(text)]
    return sum(w not in dictionary and w.removesuffix("'s") not in dictionary for w in words) / len(words)
