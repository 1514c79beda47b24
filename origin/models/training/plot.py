"""Draw training logs as one SVG: the loss of every source against the tokens seen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b")
WIDTH, HEIGHT, MARGIN = 640, 360, 44


def smooth(points: list[tuple[float, float]], weight: float = 0.8) -> list[tuple[float, float]]:
    """Exponential moving average of the second values."""
    value, result = points[0][1], []
    for x, y in points:
        value = weight * value + (1 - weight) * y
        result.append((x, value))
    return result


def svg(curves: dict[str, list[tuple[float, float]]]) -> Iterator[str]:
    """The lines of the picture; curves are (tokens, nats per token) by source."""
    points = [p for curve in curves.values() for p in curve]
    right, bottom, top = max(x for x, _ in points), min(y for _, y in points), max(y for _, y in points)

    def place(x: float, y: float) -> tuple[float, float]:
        return MARGIN + x / right * (WIDTH - 2 * MARGIN), MARGIN + (top - y) / (top - bottom) * (HEIGHT - 2 * MARGIN)

    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    yield "<title>Training loss of each source against the tokens seen</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for part in range(5):
        x, y = place(right * part / 4, bottom + (top - bottom) * part / 4)
        yield f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/>'
        yield f'<text x="4" y="{y + 4:.1f}">{bottom + (top - bottom) * part / 4:.2f}</text>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{right * part / 4 / 1e6:.1f} M</text>'
    yield f'<text x="4" y="14">nats per token by source</text><text x="{WIDTH - 4}" y="{HEIGHT - 8}" text-anchor="end">tokens</text>'
    for index, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in curve)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield f'<text x="{200 + 80 * index}" y="14" fill="{colour}">{name}</text>'
    yield "</svg>"


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, nargs="+", required=True, help="log.jsonl of the plateau, then of the cool-down")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    curves: dict[str, list[tuple[float, float]]] = {}
    for line in (json.loads(line) for path in arguments.log for line in path.read_text().splitlines()):
        for name, value in line["sources"].items():
            # A resumed run or a cool-down replaces what was logged after its checkpoint.
            kept = [point for point in curves.get(name, []) if point[0] < line["tokens"]]
            curves[name] = [*kept, (line["tokens"], value)]
    arguments.out.write_text("\n".join(svg({name: smooth(curve) for name, curve in curves.items()})) + "\n")


if __name__ == "__main__":
    main()
