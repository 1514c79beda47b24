/** Files of this server that the browser keeps: each is fetched once, and works offline from then on. */

const CACHE = 'continuo-model';

export interface Fetched {
  readonly contents: readonly Uint8Array[];
  /** False if the browser's storage is full or blocked: the next visit fetches them again. */
  readonly kept: boolean;
}

/** Null where storage is blocked, and on pages from another host over plain HTTP, which have none. */
const openCache = async (): Promise<Cache | null> =>
  'caches' in self ? caches.open(CACHE).catch(() => null) : null;

/**
 * Returns the files at these addresses.
 * @param sizes their bytes, for the progress
 * @throws Error with one line if one cannot be fetched
 */
export async function keptFiles(
  files: readonly { readonly url: string; readonly bytes: number }[],
  onProgress: (loaded: number, total: number) => void,
): Promise<Fetched> {
  const cache = await openCache();
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let loaded = 0;
  let kept = cache !== null;
  const count = (bytes: number) => onProgress((loaded += bytes), total);
  const contents: Uint8Array[] = [];
  for (const { url } of files) {
    const cached = await cache?.match(url);
    const content = await read(cached ?? (await fetchFile(url)), count);
    contents.push(content);
    if (!cached)
      kept &&=
        (await cache?.put(url, new Response(content)).then(
          () => true,
          () => false,
        )) ?? false;
  }
  await dropOthers(cache, new Set(files.map(({ url }) => new URL(url, location.href).href)));
  return { contents, kept };
}

async function fetchFile(url: string): Promise<Response> {
  const response = await fetch(url).catch((cause: unknown) => {
    throw new Error(`The download failed: ${navigator.onLine ? String(cause) : 'this device is offline'}.`);
  });
  if (response.status === 404) throw new Error('This server does not offer the built-in model.');
  if (!response.ok)
    throw new Error(`The download failed: the server answered with status ${response.status}.`);
  return response;
}

async function read(response: Response, count: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  try {
    for await (const part of response.body!) {
      parts.push(part);
      count(part.length);
    }
  } catch (cause) {
    throw new Error(`The download broke off: ${String(cause)}.`);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Removes what earlier versions have kept. */
async function dropOthers(cache: Cache | null, wanted: ReadonlySet<string>): Promise<void> {
  for (const request of (await cache?.keys()) ?? [])
    if (!wanted.has(request.url)) await cache?.delete(request);
}
