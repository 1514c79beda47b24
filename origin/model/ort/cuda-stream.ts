import type { DeviceTurns } from '../../process/engine-locks.ts';

/** Calls a function of the driver by name. @throws RuntimeFault */
export type CudaCall = (name: string, types: readonly string[], ...values: readonly unknown[]) => void;

const NON_BLOCKING = 1;
const [WITH_TIME, WITHOUT_TIME] = [0, 2] as const;

/** Passes when the card has done all work that was begun on its stream before `record`. */
export interface CudaEvent {
  record(): void;
  /** Waits until the event has passed. */
  wait(): void;
}

/** An event that knows when it passed. */
export interface TimedEvent extends CudaEvent {
  /** Milliseconds from an earlier event to this one; 0 if one has not passed. */
  since(earlier: TimedEvent): number;
  readonly handle: bigint;
}

/** A card's work in the order in which it was begun, in the primary context, as ONNX Runtime's is. */
export class CudaStream {
  readonly handle: bigint;
  readonly #call: CudaCall;
  readonly #device: number;
  readonly #turns: DeviceTurns;
  readonly #context: bigint;
  readonly #events: bigint[] = [];

  /**
   * @param device the driver's handle of the card
   * @param turns absent = no other engine uses the card
   */
  constructor(call: CudaCall, device: number, turns: DeviceTurns = { call: (work) => work() }) {
    this.#call = call;
    this.#device = device;
    this.#turns = turns;
    this.#context = returned((cell) => call('cuDevicePrimaryCtxRetain', ['void *', 'int'], cell, device));
    try {
      this.handle = this.inContext(() =>
        returned((cell) => call('cuStreamCreate', ['void *', 'unsigned int'], cell, NON_BLOCKING)),
      );
    } catch (error) {
      call('cuDevicePrimaryCtxRelease_v2', ['int'], device);
      throw error;
    }
  }

  inContext<T>(run: () => T): T {
    return this.#turns.call(() => {
      this.#call('cuCtxPushCurrent_v2', ['void *'], this.#context);
      try {
        return run();
      } finally {
        returned((cell) => this.#call('cuCtxPopCurrent_v2', ['void *'], cell));
      }
    });
  }

  /** Waits for all work that was begun on the stream. Call in the context. */
  wait(): void {
    this.#call('cuStreamSynchronize', ['void *'], this.handle);
  }

  /** Returns an event that lives until `dispose`. */
  newEvent(): CudaEvent {
    return this.#newEvent(WITHOUT_TIME);
  }

  /** Returns an event that lives until `dispose`. */
  newTimedEvent(): TimedEvent {
    const event = this.#newEvent(WITH_TIME);
    const milliseconds = new Float32Array(1);
    const types = ['void *', 'void *', 'void *'];
    const since = ({ handle }: TimedEvent) => {
      try {
        this.inContext(() => this.#call('cuEventElapsedTime', types, milliseconds, handle, event.handle));
        return milliseconds[0]!;
      } catch {
        return 0;
      }
    };
    return { ...event, since };
  }

  #newEvent(flags: number): CudaEvent & { readonly handle: bigint } {
    const event = this.inContext(() =>
      returned((cell) => this.#call('cuEventCreate', ['void *', 'unsigned int'], cell, flags)),
    );
    this.#events.push(event);
    return {
      handle: event,
      record: () =>
        this.inContext(() => this.#call('cuEventRecord', ['void *', 'void *'], event, this.handle)),
      wait: () => this.inContext(() => this.#call('cuEventSynchronize', ['void *'], event)),
    };
  }

  dispose(): void {
    this.inContext(() => {
      for (const event of this.#events.splice(0)) this.#call('cuEventDestroy_v2', ['void *'], event);
      this.#call('cuStreamDestroy_v2', ['void *'], this.handle);
    });
    this.#call('cuDevicePrimaryCtxRelease_v2', ['int'], this.#device);
  }
}

/** Returns the handle that a call writes to a cell. */
export function returned(call: (cell: BigUint64Array) => void): bigint {
  const cell = new BigUint64Array(1);
  call(cell);
  return cell[0]!;
}
