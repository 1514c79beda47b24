/**
 * Opens the page without a connection. It keeps the document and all files of one build, and answers for
 * nothing else: requests to the API, and what has a key, pass by.
 */

declare const self: ServiceWorkerGlobalScope;
/** Of the build: the addresses of its files, and a hash of them and the document. */
declare const PAGE: { readonly files: readonly string[]; readonly hash: string };

const PREFIX = 'continuo-page-';
const OWN = PREFIX + PAGE.hash;
/** As the key of the stored document, so that no fragment is stored, which may hold a key. */
const DOCUMENT = '/';
/** A connection that brings no document for so long is none. */
const PATIENCE_MS = 5_000;

self.addEventListener('install', (event) => event.waitUntil(keepAll()));
// Without skipWaiting: the files of a build stay until its last tab has closed.
self.addEventListener('activate', (event) =>
  event.waitUntil(Promise.all([dropOthers(), self.clients.claim()])),
);
self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== location.origin) return;
  if (pathname.startsWith('/assets/')) event.respondWith(fileOf(request));
  else if (pathname === DOCUMENT && request.mode === 'navigate') event.respondWith(documentOf(request));
});

/** All or none. */
async function keepAll(): Promise<void> {
  const cache = await caches.open(OWN);
  const page = new Request(DOCUMENT, { headers: { accept: 'text/html' }, cache: 'reload' });
  try {
    await cache.addAll([page, ...PAGE.files]);
    const text = await (await cache.match(DOCUMENT, { ignoreVary: true }))!.text();
    const named = Array.from(text.matchAll(/"(\/assets\/[^"]+)"/g), ([, file]) => file!);
    if (named.some((file) => !PAGE.files.includes(file))) throw new Error('The server has another build.');
  } catch (thrown) {
    await caches.delete(OWN);
    throw thrown;
  }
}

async function dropOthers(): Promise<void> {
  const names = await caches.keys();
  const others = names.filter((name) => name.startsWith(PREFIX) && name !== OWN);
  await Promise.all(others.map((name) => caches.delete(name)));
}

/** Returns what the newest build has kept that has all its files. */
async function keptOf(address: string | Request): Promise<Response | undefined> {
  for (const name of (await caches.keys()).filter((name) => name.startsWith(PREFIX)).reverse()) {
    const response = await (await caches.open(name)).match(address, { ignoreVary: true });
    if (response) return response;
  }
  return undefined;
}

const fileOf = async (request: Request): Promise<Response> => (await keptOf(request)) ?? fetch(request);

/** The server's document, so that a reload brings a new build; without a connection, the kept one. */
async function documentOf(request: Request): Promise<Response> {
  const fetched = fetch(request);
  const isLate = new Promise<null>((resolve) => setTimeout(resolve, PATIENCE_MS, null));
  const response = await Promise.race([fetched, isLate]).catch(() => null);
  return response ?? (await keptOf(DOCUMENT)) ?? fetched;
}
