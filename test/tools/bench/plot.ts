/** Draws a line plot as an SVG document: logarithmic x (powers of two), linear y from zero. */

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const WIDTH = 720;
const HEIGHT = 420;
const MARGIN = { left: 70, right: 190, top: 40, bottom: 50 };
const COLOURS = ['#1b9e77', '#d95f02', '#7570b3', '#e7298a', '#66a61e', '#a6761d'];

const escapeText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** A round number of at most `top`/4, so that about four grid lines fit. */
function gridStep(top: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(top / 4));
  const factor = [5, 2, 1].find((candidate) => candidate * magnitude <= top / 4) ?? 1;
  return factor * magnitude;
}

/** Omits points that were not measured (NaN). */
export function linePlot(title: string, xLabel: string, yLabel: string, measured: readonly Series[]): string {
  const series = measured.map(({ name, points }) => ({
    name,
    points: points.filter(([, y]) => Number.isFinite(y)),
  }));
  const points = series.flatMap((each) => each.points);
  const xs = [...new Set(points.map(([x]) => x))].sort((a, b) => a - b);
  const top = Math.max(...points.map(([, y]) => y), 1) * 1.05;
  const [first, last] = [Math.log2(xs[0] ?? 1), Math.log2(xs.at(-1) ?? 2)];
  const plotWidth = WIDTH - MARGIN.left - MARGIN.right;
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const px = (x: number) => MARGIN.left + ((Math.log2(x) - first) / Math.max(last - first, 1)) * plotWidth;
  const py = (y: number) => MARGIN.top + plotHeight * (1 - y / top);
  const text = (x: number, y: number, body: string, anchor = 'middle') =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${escapeText(body)}</text>`;

  const step = gridStep(top);
  const grid = Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step).map(
    (y) =>
      `<line x1="${MARGIN.left}" x2="${MARGIN.left + plotWidth}" y1="${py(y)}" y2="${py(y)}" stroke="#ddd"/>` +
      text(MARGIN.left - 8, py(y) + 4, y.toLocaleString('en'), 'end'),
  );
  const ticks = xs.map((x) => text(px(x), HEIGHT - MARGIN.bottom + 20, String(x)));
  const lines = series.map(({ name, points: own }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const path = own.map(([x, y]) => `${px(x)},${py(y)}`).join(' ');
    const dots = own.map(([x, y]) => `<circle cx="${px(x)}" cy="${py(y)}" r="3" fill="${colour}"/>`).join('');
    const y = MARGIN.top + 14 + index * 20;
    const legend = `<rect x="${WIDTH - MARGIN.right + 14}" y="${y - 9}" width="10" height="10" fill="${colour}"/>`;
    return (
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${legend}` +
      text(WIDTH - MARGIN.right + 30, y, name, 'start')
    );
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<g font-size="15">${text(MARGIN.left + plotWidth / 2, 22, title)}</g>`,
    ...grid,
    ...ticks,
    text(MARGIN.left + plotWidth / 2, HEIGHT - 12, xLabel),
    `<text transform="translate(16 ${MARGIN.top + plotHeight / 2}) rotate(-90)" text-anchor="middle">${escapeText(yLabel)}</text>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n');
}
