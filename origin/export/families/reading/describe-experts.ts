import type { Activation, ExpertsDesign, MlpDesign, RouterDesign } from '../../design/feed-forward-design.ts';
import { type ProjectionDesign, whole } from '../../design/weight-design.ts';
import type { ConfigFields } from './config-fields.ts';
import type { ExpertsStyle } from './decoder-row.ts';
import { projection } from './design-parts.ts';

/** Describes the experts of a layer. @throws ModelError */
export function describeExperts(
  fields: ConfigFields,
  layer: string,
  style: ExpertsStyle,
  activation: Activation,
  hidden: number,
  mlp: MlpDesign,
): ExpertsDesign {
  const { matrices } = style;
  const width = fields.count(style.width);
  const expert = (index: number): MlpDesign => {
    const common = { kind: 'mlp' as const, width, activation };
    if ('stacks' in matrices)
      return { ...common, ...stackedExpert(layer, matrices, index, { width, hidden }) };
    const { gate, up, down } = matrices.of(index);
    const of = (name: string) => projection(`${layer}.${name}`, false);
    return { ...common, gate: gate === undefined ? null : of(gate), up: of(up), down: of(down) };
  };
  const count = fields.has('num_local_experts') ? 'num_local_experts' : 'num_experts';
  const experts = Array.from({ length: fields.count(style.counts?.experts ?? count) }, (_, index) =>
    expert(index),
  );
  return {
    kind: 'experts',
    experts,
    router: describeRouter(fields, layer, style, experts.length),
    shared: describeShared(layer, style.shared, activation, mlp),
  };
}

/** @param mlp what the layer has without experts */
function describeShared(
  layer: string,
  shared: ExpertsStyle['shared'],
  activation: Activation,
  mlp: MlpDesign,
): ExpertsDesign['shared'] {
  if (shared === undefined) return null;
  if (shared === 'mlp') return { mlp, gate: null };
  const of = (name: string) => projection(`${layer}.${shared.name}.${name}`, false);
  return {
    mlp: {
      kind: 'mlp',
      width: shared.width,
      activation,
      gate: mlp.gate === null ? null : of('gate_proj'),
      up: of('up_proj'),
      down: of('down_proj'),
    },
    gate: shared.gate === undefined ? null : projection(`${layer}.${shared.gate}`, false),
  };
}

function describeRouter(
  fields: ConfigFields,
  layer: string,
  style: ExpertsStyle,
  experts: number,
): RouterDesign {
  const { routing = {}, correction } = style;
  const { groups = null } = routing;
  const size = groups === null ? experts : experts / groups.count;
  if (groups !== null && (!Number.isInteger(size) || size < groups.best || groups.chosen > groups.count))
    throw fields.fault('n_group', `with topk_group, groups of the ${experts} experts`);
  if (routing.scale !== undefined && routing.scale <= 0)
    throw fields.fault('routed_scaling_factor', 'above 0');
  const active = style.counts?.active ?? fields.count('num_experts_per_tok');
  const available = size * (groups?.chosen ?? 1);
  if (active > available) throw fields.fault('num_experts_per_tok', `at most ${available}`);
  return {
    projection: projection(`${layer}.${style.router}`, style.routerBias ?? false),
    active,
    scores: 'softmax',
    correction: correction === undefined ? null : whole(`${layer}.${correction}`),
    normalized: style.normalized,
    smallestSum: 0,
    epsilon: 0,
    scale: 1,
    scalesInput: false,
    ...routing,
    groups,
    ...(style.routerScales?.(layer) ?? { input: null, expertScales: null }),
  };
}

/**
 * An expert of stacked matrices. GraniteMoE: [experts, outputs, inputs], gate above up. gpt-oss: [experts,
 * inputs, outputs] with biases [experts, outputs], whose rows are counted through all experts, gate and up
 * alternating.
 */
function stackedExpert(
  layer: string,
  { stacks, clipped, transposed = false }: Extract<ExpertsStyle['matrices'], { readonly stacks: unknown }>,
  index: number,
  { width, hidden }: { readonly width: number; readonly hidden: number },
): Omit<MlpDesign, 'kind' | 'width' | 'activation'> {
  if (clipped === null) {
    const part = (name: string, first: number, count: number): ProjectionDesign => ({
      weight: [{ tensor: `${layer}.${name}`, matrix: index, transposed, rows: [{ first, count }] }],
      bias: null,
    });
    return {
      gate: part(stacks.gateUp, 0, width),
      up: part(stacks.gateUp, width, width),
      down: { weight: [{ tensor: `${layer}.${stacks.down}`, matrix: index, transposed }], bias: null },
    };
  }
  const tensor = `${layer}.${stacks.gateUp}`;
  const alternate = (offset: number): ProjectionDesign => {
    const rows = (first: number) => [{ first, count: width, step: 2 }];
    return {
      weight: [{ tensor, matrix: index, transposed: true, rows: rows(offset) }],
      bias: [{ tensor: `${tensor}_bias`, rows: rows(2 * width * index + offset) }],
    };
  };
  return {
    gate: alternate(0),
    up: alternate(1),
    down: {
      weight: [{ tensor: `${layer}.${stacks.down}`, matrix: index, transposed: true }],
      bias: [{ tensor: `${layer}.${stacks.down}_bias`, rows: [{ first: hidden * index, count: hidden }] }],
    },
    clippedSwiglu: clipped,
  };
}
