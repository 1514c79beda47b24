import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ProtoMessage } from './protobuf.ts';

/** Builds an ONNX ModelProto node by node (field numbers: onnx.proto). */

export const MICROSOFT = 'com.microsoft';

export const ElementType = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  bfloat16: 16,
  float8e4m3fn: 17,
} as const;
export type ElementTypeName = keyof typeof ElementType;
export type Dimension = number | string;

/** An attribute. Integers are marked, because JavaScript does not distinguish 1 and 1.0. */
export type Attribute =
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly float: number }
  | { readonly string: string }
  | { readonly graph: ProtoMessage };

interface NodeOptions {
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, Attribute>>;
}

interface BranchOutput {
  readonly name: string;
  readonly type: ElementTypeName;
  /** If absent, ONNX infers it. */
  readonly dimensions?: readonly Dimension[];
}

const AttributeType = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;
const EXTERNAL_ALIGNMENT = 4096;

export class OnnxWriter {
  #nodes: ProtoMessage[] = [];
  readonly #inputs: ProtoMessage[] = [];
  readonly #outputs: ProtoMessage[] = [];
  readonly #initializers: ProtoMessage[] = [];
  readonly #inner: ProtoMessage[] = [];
  readonly #names = new Set<string>();
  readonly #externalFile: string | undefined;
  readonly #external: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  #externalEnd = 0;
  readonly #places = new Map<ArrayBufferView, number>();

  /** With a file name, initializers of 1 KiB and more go to that file in the model's folder. */
  constructor(externalFile?: string) {
    this.#externalFile = externalFile;
  }

  input(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#inputs.push(valueInfo(name, type, dimensions));
  }

  output(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#outputs.push(valueInfo(name, type, dimensions));
  }

  /** Writes down the shape of a node's output (value_info), which ONNX leaves to the exporter. */
  inner(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#inner.push(valueInfo(name, type, dimensions));
  }

  /** Returns the first output's name. An empty name stands for an omitted optional input or output. */
  node(
    operator: string,
    inputs: readonly string[],
    outputs: readonly [string, ...string[]],
    options: NodeOptions = {},
  ): string {
    const node = new ProtoMessage();
    for (const name of inputs) node.string(1, name);
    for (const name of outputs) node.string(2, name);
    node.string(3, `${operator}:${outputs[0]}`).string(4, operator);
    for (const [name, value] of Object.entries(options.attributes ?? {})) {
      const attribute = new ProtoMessage().string(1, name);
      if ('int' in value) attribute.integer(3, value.int).integer(20, AttributeType.int);
      else if ('float' in value) attribute.float(2, value.float).integer(20, AttributeType.float);
      else if ('string' in value) attribute.string(4, value.string).integer(20, AttributeType.string);
      else if ('ints' in value) {
        for (const one of value.ints) attribute.integer(8, one);
        attribute.integer(20, AttributeType.ints);
      } else attribute.message(6, value.graph).integer(20, AttributeType.graph);
      node.message(5, attribute);
    }
    if (options.domain !== undefined) node.string(7, options.domain);
    this.#nodes.push(node);
    return outputs[0];
  }

  /**
   * Writes the graph of a branch. Nodes that `write` adds go to the branch, initializers to the outer graph,
   * which the branch can read. Output names must be unique to the branch.
   */
  branch(name: string, write: () => readonly BranchOutput[]): ProtoMessage {
    const outside = this.#nodes;
    this.#nodes = [];
    const outputs = write();
    const graph = new ProtoMessage();
    for (const node of this.#nodes) graph.message(1, node);
    graph.string(2, name);
    for (const { name: output, type, dimensions } of outputs)
      graph.message(12, dimensions ? valueInfo(output, type, dimensions) : typeOnly(output, type));
    this.#nodes = outside;
    return graph;
  }

  /** The same view a second time is in the external file once. */
  initializer(
    name: string,
    type: ElementTypeName,
    dimensions: readonly number[],
    data: ArrayBufferView,
  ): string {
    const tensor = new ProtoMessage();
    for (const dimension of dimensions) tensor.integer(1, dimension);
    tensor.integer(2, ElementType[type]).string(8, name);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (this.#externalFile !== undefined && bytes.length >= 1024) {
      const offset = this.#externalPlace(data, bytes);
      const entries = { location: this.#externalFile, offset: `${offset}`, length: `${bytes.length}` };
      for (const [key, value] of Object.entries(entries)) {
        tensor.message(13, new ProtoMessage().string(1, key).string(2, value));
      }
      tensor.integer(14, 1);
    } else {
      tensor.bytes(9, bytes);
    }
    this.#initializers.push(tensor);
    this.#names.add(name);
    return name;
  }

  #externalPlace(data: ArrayBufferView, bytes: Uint8Array): number {
    const known = this.#places.get(data);
    if (known !== undefined) return known;
    const offset = Math.ceil(this.#externalEnd / EXTERNAL_ALIGNMENT) * EXTERNAL_ALIGNMENT;
    this.#external.push({ offset, bytes });
    this.#externalEnd = offset + bytes.length;
    this.#places.set(data, offset);
    return offset;
  }

  /** Adds an int64 scalar; a known name returns the existing one. */
  integer(name: string, value: number): string {
    return this.has(name) ? name : this.initializer(name, 'int64', [], BigInt64Array.of(BigInt(value)));
  }

  /** Adds a list of int64; a known name returns the existing one. */
  integers(name: string, values: readonly number[]): string {
    if (this.has(name)) return name;
    return this.initializer(name, 'int64', [values.length], BigInt64Array.from(values, BigInt));
  }

  /** Returns whether there is an initializer of this name. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Writes `file` and, if one is named, the external data file in its folder. */
  write(directory: string, file: string): void {
    const graph = new ProtoMessage();
    for (const node of this.#nodes) graph.message(1, node);
    graph.string(2, 'synthetic');
    for (const initializer of this.#initializers) graph.message(5, initializer);
    for (const input of this.#inputs) graph.message(11, input);
    for (const output of this.#outputs) graph.message(12, output);
    for (const inner of this.#inner) graph.message(13, inner);
    const model = new ProtoMessage()
      .integer(1, 8)
      .string(2, 'synthetic')
      .message(7, graph)
      .message(8, new ProtoMessage().string(1, '').integer(2, 17))
      .message(8, new ProtoMessage().string(1, MICROSOFT).integer(2, 1));
    writeRuns(
      join(directory, file),
      model.parts.map((bytes) => ({ bytes })),
    );
    if (this.#externalFile !== undefined) writeRuns(join(directory, this.#externalFile), this.#external);
  }
}

/** An output whose shape ONNX infers. */
function typeOnly(name: string, type: ElementTypeName): ProtoMessage {
  const tensor = new ProtoMessage().integer(1, ElementType[type]);
  return new ProtoMessage().string(1, name).message(2, new ProtoMessage().message(1, tensor));
}

function valueInfo(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): ProtoMessage {
  const shape = new ProtoMessage();
  for (const dimension of dimensions) {
    const encoded = new ProtoMessage();
    if (typeof dimension === 'number') encoded.integer(1, dimension);
    else encoded.string(2, dimension);
    shape.message(1, encoded);
  }
  const tensor = new ProtoMessage().integer(1, ElementType[type]).message(2, shape);
  return new ProtoMessage().string(1, name).message(2, new ProtoMessage().message(1, tensor));
}

/** Writes byte runs. Small runs are joined into one write; a run with an offset is written there. */
function writeRuns(
  file: string,
  runs: readonly { readonly bytes: Uint8Array; readonly offset?: number }[],
): void {
  const descriptor = openSync(file, 'w');
  try {
    let position = 0;
    let pending: Uint8Array[] = [];
    const flush = () => {
      if (pending.length > 0) writeSync(descriptor, Buffer.concat(pending));
      pending = [];
    };
    for (const { bytes, offset } of runs) {
      if (offset !== undefined) pending.push(new Uint8Array(offset - position));
      pending.push(bytes);
      position = (offset ?? position) + bytes.length;
      if (bytes.length > 65_536) flush();
    }
    flush();
  } finally {
    closeSync(descriptor);
  }
}
