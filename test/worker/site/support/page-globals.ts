import { vi } from 'vitest';

/** Import it before modules of the page that listen to its end when they are loaded. */
vi.stubGlobal('addEventListener', () => undefined);
