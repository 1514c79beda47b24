/** The server that `npm start` runs with the same environment. It accepts the development key of this checkout. */

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the address of the local server. */
export function localAddress({ CONTINUO_HOST, CONTINUO_PORT }: Environment): string {
  const host = CONTINUO_HOST || '127.0.0.1';
  return `http://${host.includes(':') ? `[${host}]` : host}:${CONTINUO_PORT || '8787'}`;
}

/** Returns whether an address is the local machine's, or the configured one of the local server. */
export function isLocal({ hostname }: URL, environment: Environment): boolean {
  const own = URL.parse(localAddress(environment))?.hostname;
  return ['127.0.0.1', 'localhost', '[::1]', own].includes(hostname);
}
