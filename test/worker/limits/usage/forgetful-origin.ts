import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEPT_CONNECTIONS } from '../../../support/kept-connections.ts';

export interface ForgetfulOrigin {
  readonly bindings: Readonly<Record<string, string>>;
  /** The next answers. If one throws, the connection is lost. */
  readonly answers: (() => Promise<unknown>)[];
  stop(): Promise<void>;
}

/** An origin that serves only usage accounts, empty unless a test sets them. So renewals are billed. */
export async function startForgetfulOrigin(): Promise<ForgetfulOrigin> {
  const server = createServer(KEPT_CONNECTIONS, async (_, response) => {
    const answer = origin.answers.shift() ?? (async () => null);
    await answer().then(
      (account) => response.end(JSON.stringify(account)),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const origin: ForgetfulOrigin = {
    bindings: { ORIGIN_URL: url, ORIGIN_SECRET: 'not checked here, at least 32 bytes' },
    answers: [],
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
  return origin;
}
