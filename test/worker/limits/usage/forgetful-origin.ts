import { serve } from '../../../support/local-server.ts';

export interface ForgetfulOrigin {
  readonly bindings: Readonly<Record<string, string>>;
  /** The next answers. If one throws, the connection is lost. */
  readonly answers: (() => Promise<unknown>)[];
  stop(): Promise<void>;
}

/** An origin that serves only usage accounts, empty unless a test sets them. So renewals are billed. */
export async function startForgetfulOrigin(): Promise<ForgetfulOrigin> {
  const { url, stop } = await serve(async (_, response) => {
    const answer = origin.answers.shift() ?? (async () => null);
    await answer().then(
      (account) => response.end(JSON.stringify(account)),
      () => response.destroy(),
    );
  });
  const origin: ForgetfulOrigin = {
    bindings: { ORIGIN_URL: url, ORIGIN_SECRET: 'not checked here, at least 32 bytes' },
    answers: [],
    stop,
  };
  return origin;
}
