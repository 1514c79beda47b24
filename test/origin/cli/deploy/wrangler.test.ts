import { expect, test } from 'vitest';
import { WranglerError, wranglerIn } from '../../../../origin/cli/deploy/wrangler.ts';

test('a wrangler that cannot be started is an error with the reason', async () => {
  const run = wranglerIn(process.cwd(), { PATH: '' })(['deploy']);
  await expect(run).rejects.toThrow(WranglerError);
  await expect(run).rejects.toThrow(/^wrangler deploy failed:\nspawn wrangler ENOENT/);
});
