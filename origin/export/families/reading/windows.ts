import type { ConfigFields } from './config-fields.ts';
import type { Differences, LayerDifferences, RowContext } from './decoder-row.ts';
import { readSlidingLayers } from './design-parts.ts';

/** Which layers have a window, and which have rotary positions. */

/** The window of sliding_window in all layers. */
export function everywhere(fields: ConfigFields): Pick<Differences, 'layer'> {
  const window = fields.optionalCount('sliding_window');
  return { layer: () => ({ window }) };
}

/**
 * The window of sliding_window in the layers that layer_types names; `absent` names them if that field is
 * absent.
 */
export function byLayer(
  { fields, sizes }: RowContext,
  absent: (layer: number) => boolean,
): { readonly window: number | null; readonly isSliding: readonly boolean[] } {
  const window = fields.optionalCount('sliding_window');
  return { window, isSliding: readSlidingLayers(fields, sizes.layers, absent) };
}

const windowed = (layers: ReturnType<typeof byLayer>): ((index: number) => LayerDifferences) => {
  return (index) => ({ window: layers.isSliding[index] ? layers.window : null });
};

/** All layers but every nth have the window. */
export const everyNthFull = (row: RowContext, n: number): Pick<Differences, 'layer'> => ({
  layer: windowed(byLayer(row, (layer) => (layer + 1) % n !== 0)),
});

/** Qwen: later layers have the window, if use_sliding_window says so. */
export function laterLayers(row: RowContext): Pick<Differences, 'layer'> {
  const { fields, sizes } = row;
  const first = fields.number('max_window_layers', 28);
  if (fields.flag('use_sliding_window', false))
    return { layer: windowed(byLayer(row, (layer) => layer >= first)) };
  fields.ignore('sliding_window');
  readSlidingLayers(fields, sizes.layers, () => false);
  return {};
}

/** SmolLM 3: layers without rotary positions, which may have a window. */
export function withoutPositions(row: RowContext): Pick<Differences, 'layer'> {
  const { fields, sizes } = row;
  const interval = fields.count('no_rope_layer_interval', 4);
  const listed = fields.has('no_rope_layers') ? fields.numbers('no_rope_layers') : null;
  if (listed !== null && listed.length !== sizes.layers)
    throw fields.fault('no_rope_layers', `${sizes.layers} numbers`);
  const rotated = (layer: number) => (listed?.[layer] ?? (layer + 1) % interval) !== 0;
  const used = fields.flag('use_sliding_window', false);
  const { window, isSliding } = byLayer(row, (layer) => !rotated(layer));
  return {
    layer: (index) => ({ rotated: rotated(index), window: used && isSliding[index] ? window : null }),
  };
}

/** EXAONE 4: if some layers have a window, only those have rotary positions. */
export function exaoneLayers(row: RowContext): Pick<Differences, 'layer'> {
  const { fields } = row;
  const hybrid = fields.has('sliding_window');
  const pattern = fields.has('layer_types') || !hybrid ? 1 : fields.count('sliding_window_pattern', 4);
  fields.ignore('sliding_window_pattern');
  const { window, isSliding } = byLayer(row, (layer) => (layer + 1) % pattern !== 0);
  return {
    layer: (index) => ({
      window: isSliding[index] ? window : null,
      rotated: !hybrid || isSliding[index] === true,
    }),
  };
}
