import { statSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { repositoryPaths } from '../../../../origin/hub/fetch/cache.ts';
import { HubClient } from '../../../../origin/hub/fetch/hub-client.ts';
import { HubError } from '../../../../origin/hub/fetch/hub-error.ts';
import { type PullRequest, pull } from '../../../../origin/hub/fetch/pull.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { FakeHub, type FakeRepository, sha256 } from './fake-hub.ts';
import { communityFiles } from './repository-files.ts';

export const NAME = 'tiny-org/tiny-model';
export const WEIGHTS = 'onnx/model_q4f16.onnx_data';
export const FILES = communityFiles();

interface ClientOptions {
  readonly token?: string | null;
  readonly stallMs?: number;
}

/** A fake hub and an empty cache to pull into. Records notes and retry delays. */
export class PullFixture {
  cache = newDirectory();
  readonly notes: string[] = [];
  /** Milliseconds. */
  readonly delays: number[] = [];
  hub: FakeHub;

  private constructor(hub: FakeHub) {
    this.hub = hub;
    hub.bytesOnDisk = () =>
      statSync(`${this.weightsBlob()}.incomplete`, { throwIfNoEntry: false })?.size ?? 0;
  }

  static async start(): Promise<PullFixture> {
    return new PullFixture(await FakeHub.start());
  }

  stop() {
    return this.hub.stop();
  }

  offer(repository: Partial<FakeRepository> = {}): void {
    this.hub.repositories.set(NAME, { files: FILES, ...repository });
  }

  run(request: Partial<PullRequest> = {}, { token = null, stallMs = 10_000 }: ClientOptions = {}) {
    const { cache } = this;
    const sleep = async (ms: number) => void this.delays.push(ms);
    const note = (line: string) => void this.notes.push(line);
    const client = new HubClient({
      settings: { endpoint: this.hub.endpoint, token, cache },
      fetch,
      retries: { maxAttempts: 4, sleep, random: () => 0.5, onRetry: note },
      stallMs,
    });
    const progress = { start: () => ({ update() {}, stop() {} }), note };
    return pull({ repository: NAME, revision: 'main', ...request }, { client, cache, progress });
  }

  /** Runs a pull that must fail with a HubError of one line. Returns its message. */
  async fault(...args: Parameters<PullFixture['run']>): Promise<string> {
    const error = await this.run(...args).then(
      () => new Error('the pull succeeded'),
      (thrown: Error) => thrown,
    );
    expect(error).toBeInstanceOf(HubError);
    expect(error.message).not.toContain('\n');
    return error.message;
  }

  paths() {
    return repositoryPaths(this.cache, NAME);
  }

  weightsBlob(): string {
    return path.join(this.paths().blobs, sha256(FILES[WEIGHTS] as Buffer));
  }
}
