import { vi } from 'vitest';

/** A page without elements but fields that show a fault, of which the first one takes the focus. */
export const stubDocument = (faulty: readonly object[] = []): void => {
  vi.stubGlobal('document', { hidden: true, activeElement: faulty[0], querySelectorAll: () => faulty });
};
