/** The server's time. The device's own clock may be wrong by days. */
export interface ServerClock {
  /** Reads the time of an answer. */
  note(headers: Headers): void;
  /** Unix milliseconds; by the device until an answer has a time. */
  now(): number;
}

export function serverClock(deviceNow: () => number): ServerClock {
  let ahead = 0;
  return {
    note(headers) {
      const at = Date.parse(headers.get('date') ?? '');
      if (Number.isFinite(at)) ahead = at - deviceNow();
    },
    now: () => deviceNow() + ahead,
  };
}
