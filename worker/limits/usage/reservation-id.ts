import { namedPrice, type Price, priceName } from './price.ts';

/** Origins accept accounts of 200 characters. The names of callers may have 128. */
const MAX_NAME = 100;

interface ReservationName {
  readonly isolate: string;
  /** The slice that pays for it; 0 = the object decides. */
  readonly slice: number;
  /** Increases with every request of the isolate. */
  readonly number: number;
  readonly price: Price | null;
  readonly name: string;
}

/**
 * Returns the id of a reservation. The object and origins keep it, so it tells them the price of the request.
 */
export const reservationId = ({ isolate, slice, number, price, name }: ReservationName): string =>
  `${isolate}.${slice}.${number}.${priceName(price)}.${keptName(name)}`;

export const sliceOf = (id: string): number => Number(id.split('.', 2)[1]);
export const numberOf = (id: string): number => Number(id.split('.', 3)[2]);
export const priceOf = (id: string): Price | null => namedPrice(id.split('.', 4)[3]);

/** Returns the caller's name of a request, as far as it is kept. */
export const nameOf = (id: string): string => /^(?:[^.]*\.){4}(.*)$/s.exec(id)?.[1] ?? '';

/** Returns what is kept of a caller's name. */
export const keptName = (name: string): string => name.slice(0, MAX_NAME);

/** Returns a new name of a request, which tells the time of its arrival. @param random 20 hex digits */
export const requestName = (now: number, random: string): string =>
  `req_${Math.max(0, now).toString(16).padStart(12, '0')}${random}`;

/** Returns the arrival of a request in Unix milliseconds; null if a caller has named it. */
export function arrivalOf(name: string): number | null {
  const [, time] = /^req_([0-9a-f]{12})[0-9a-f]{20}$/.exec(name) ?? [];
  return time === undefined ? null : Number.parseInt(time, 16);
}
