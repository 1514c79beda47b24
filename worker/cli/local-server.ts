/** Where `npm start` listens under the same environment: that Worker takes the key which this checkout has made. */

type Environment = Readonly<Record<string, string | undefined>>;

export function localAddress({ CONTINUO_HOST, CONTINUO_PORT }: Environment): string {
  const host = CONTINUO_HOST || '127.0.0.1';
  return `http://${host.includes(':') ? `[${host}]` : host}:${CONTINUO_PORT || '8787'}`;
}

/** Whether the address is this machine's, or the one that `npm start` was told to listen at. */
export function isLocal({ hostname }: URL, environment: Environment): boolean {
  const own = URL.parse(localAddress(environment))?.hostname;
  return ['127.0.0.1', 'localhost', '[::1]', own].includes(hostname);
}
