import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import {
  encodeAttribute,
  encodeInitializer,
  encodeIntegerAttribute,
  encodeRawData,
  encodeTensor,
} from '../../../origin/model/onnx/onnx-encode.ts';
import { ElementType, GraphField, ModelField } from '../../../origin/model/onnx/onnx-graph.ts';
import {
  encodeFloat,
  encodeInteger,
  encodeMessage,
  encodeString,
  joined,
  messageRuns,
} from '../../../origin/model/onnx/wire-format.ts';

/**
 * Builds an ONNX ModelProto node by node (field numbers: onnx.proto), as other exporters write it. ONNX
 * Runtime reads the same files, so a mistake that the encoder shares with the reader is noticed.
 */

export const MICROSOFT = 'com.microsoft';

export type ElementTypeName = keyof typeof ElementType;
export type Dimension = number | string;

/** An attribute. Integers are marked, because JavaScript does not distinguish 1 and 1.0. */
export type Attribute =
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly float: number }
  | { readonly string: string }
  | { readonly graph: readonly Uint8Array[] };

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

const EXTERNAL_ALIGNMENT = 4096;

export class OnnxWriter {
  #nodes: Uint8Array[] = [];
  /** Initializers, inputs, outputs and what is noted of inner tensors. */
  readonly #parts: Uint8Array[] = [];
  readonly #names = new Set<string>();
  readonly #externalFile: string | undefined;
  readonly #externalData: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  #externalEnd = 0;
  readonly #places = new Map<ArrayBufferView, number>();

  /** With a file name, initializers of 1 KiB and more go to that file in the model's folder. */
  constructor(externalFile?: string) {
    this.#externalFile = externalFile;
  }

  input(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#parts.push(valueInfo(GraphField.input, name, type, dimensions));
  }

  output(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#parts.push(valueInfo(GraphField.output, name, type, dimensions));
  }

  /** Writes down the shape of a node's output (value_info), which ONNX leaves to the exporter. */
  inner(name: string, type: ElementTypeName, dimensions: readonly Dimension[]): void {
    this.#parts.push(valueInfo(GraphField.valueInfo, name, type, dimensions));
  }

  /** Returns the first output's name. An empty name stands for an omitted optional input or output. */
  node(
    operator: string,
    inputs: readonly string[],
    outputs: readonly [string, ...string[]],
    options: NodeOptions = {},
  ): string {
    this.#nodes.push(
      encodeMessage(GraphField.node, [
        ...inputs.map((name) => encodeString(1, name)),
        ...outputs.map((name) => encodeString(2, name)),
        encodeString(3, `${operator}:${outputs[0]}`),
        encodeString(4, operator),
        ...Object.entries(options.attributes ?? {}).map(([name, value]) => attribute(name, value)),
        ...(options.domain === undefined ? [] : [encodeString(7, options.domain)]),
      ]),
    );
    return outputs[0];
  }

  /**
   * Writes the graph of a branch. Nodes that `write` adds go to the branch, initializers to the outer graph,
   * which the branch can read. Output names must be unique to the branch.
   */
  branch(name: string, write: () => readonly BranchOutput[]): readonly Uint8Array[] {
    const outside = this.#nodes;
    this.#nodes = [];
    const outputs = write();
    const nodes = this.#nodes;
    this.#nodes = outside;
    const encoded = outputs.map(({ name, type, dimensions }) =>
      dimensions ? valueInfo(GraphField.output, name, type, dimensions) : typeOnly(name, type),
    );
    return [...nodes, encodeString(2, name), ...encoded];
  }

  /** The same view a second time is in the external file once. */
  initializer(
    name: string,
    type: ElementTypeName,
    dimensions: readonly number[],
    data: ArrayBufferView,
  ): string {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const isExternal = this.#externalFile !== undefined && bytes.length >= 1024;
    const content = isExternal ? this.#external(data, bytes) : [encodeRawData([bytes])];
    const elementType = ElementType[type];
    this.#parts.push(encodeInitializer({ name, elementType, dimensions }, content));
    this.#names.add(name);
    return name;
  }

  /** Returns the place in the external file, as fields of a tensor. */
  #external(data: ArrayBufferView, bytes: Uint8Array): Uint8Array[] {
    const offset = this.#externalPlace(data, bytes);
    const entries = { location: this.#externalFile!, offset: `${offset}`, length: `${bytes.length}` };
    const fields = Object.entries(entries).map(([key, value]) =>
      encodeMessage(13, [encodeString(1, key), encodeString(2, value)]),
    );
    return [...fields, encodeInteger(14, 1)];
  }

  #externalPlace(data: ArrayBufferView, bytes: Uint8Array): number {
    const known = this.#places.get(data);
    if (known !== undefined) return known;
    const offset = Math.ceil(this.#externalEnd / EXTERNAL_ALIGNMENT) * EXTERNAL_ALIGNMENT;
    this.#externalData.push({ offset, bytes });
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
    const graph = [...this.#nodes, encodeString(2, 'synthetic'), ...this.#parts];
    const sets = [...operatorSet('', 17), ...operatorSet(MICROSOFT, 1)];
    const head = [encodeInteger(1, 8), encodeString(2, 'synthetic')];
    const runs = [...head, ...messageRuns(ModelField.graph, graph), ...sets];
    writeRuns(
      join(directory, file),
      runs.map((bytes) => ({ bytes })),
    );
    if (this.#externalFile !== undefined) writeRuns(join(directory, this.#externalFile), this.#externalData);
  }
}

const operatorSet = (domain: string, version: number): Uint8Array[] =>
  messageRuns(8, [encodeString(1, domain), encodeInteger(2, version)]);

function attribute(name: string, value: Attribute): Uint8Array {
  if ('int' in value) return encodeIntegerAttribute(name, value.int);
  if ('float' in value) return encodeAttribute(name, 'float', encodeFloat(2, value.float));
  if ('string' in value) return encodeAttribute(name, 'string', encodeString(4, value.string));
  if ('graph' in value) return encodeAttribute(name, 'graph', encodeMessage(6, value.graph));
  return encodeAttribute(name, 'integers', joined(value.ints.map((one) => encodeInteger(8, one))));
}

const valueInfo = (
  field: number,
  name: string,
  type: ElementTypeName,
  dimensions: readonly Dimension[],
): Uint8Array => encodeTensor(field, { name, elementType: ElementType[type], dimensions });

/** An output whose shape ONNX infers. */
const typeOnly = (name: string, type: ElementTypeName): Uint8Array =>
  encodeMessage(GraphField.output, [
    encodeString(1, name),
    encodeMessage(2, [encodeMessage(1, [encodeInteger(1, ElementType[type])])]),
  ]);

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
