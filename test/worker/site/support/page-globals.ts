/**
 * Import it before modules of the page that listen to its end when they are loaded. Not a stub of vitest:
 * that would end with the test file, and files of one process load this module once.
 */
Object.assign(globalThis, { addEventListener: () => undefined });
