import { test } from 'vitest';
import { killDuringBatches } from './batches/kills.ts';
import { crashRepeatedly } from './limits/objects/isolate-crash.ts';
import { askBesideReservation } from './limits/running-reservations.ts';

/** What ends half a minute after its isolate (SLICE_GRACE_MS): these tests wait for it at the same time. */

test.concurrent(
  'after kills of workerd and the origin, every line has one record, and ledger and bill have what was generated',
  killDuringBatches,
);

test.concurrent('frees every slot after crashes and bills what the origin generated', crashRepeatedly);

test.concurrent(
  'refuses for a while what only running requests prevent, and for good what their end does not change',
  askBesideReservation,
);
