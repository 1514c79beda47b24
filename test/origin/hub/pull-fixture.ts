import { statSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { repositoryPaths } from '../../../origin/hub/cache-layout.ts';
import { HubClient } from '../../../origin/hub/hub-client.ts';
import { HubError } from '../../../origin/hub/hub-error.ts';
import { type PullRequest, pull } from '../../../origin/hub/pull.ts';
import { FakeHub, type FakeRepository, sha256 } from './fake-hub.ts';
import { communityFiles, emptyDirectory } from './repository-files.ts';

export const NAME = 'tiny-org/tiny-model';
export const WEIGHTS = 'onnx/model_q4f16.onnx_data';
export const FILES = communityFiles();

interface Circumstances {
  readonly token?: string | null;
  readonly stallMs?: number;
}

/** A fake hub and an empty cache to pull into, with what a pull says and how long it waits. */
export class PullStage {
  cache = emptyDirectory();
  readonly notes: string[] = [];
  readonly pauses: number[] = [];
  hub: FakeHub;

  private constructor(hub: FakeHub) {
    this.hub = hub;
    hub.held = () => statSync(`${this.weightsBlob()}.incomplete`, { throwIfNoEntry: false })?.size ?? 0;
  }

  static async start(): Promise<PullStage> {
    return new PullStage(await FakeHub.start());
  }

  stop() {
    return this.hub.stop();
  }

  offer(repository: Partial<FakeRepository> = {}): void {
    this.hub.repositories.set(NAME, { files: FILES, ...repository });
  }

  run(request: Partial<PullRequest> = {}, { token = null, stallMs = 10_000 }: Circumstances = {}) {
    const { cache } = this;
    const sleep = async (ms: number) => void this.pauses.push(ms);
    const client = new HubClient({
      settings: { endpoint: this.hub.endpoint, token, cache },
      fetch,
      patience: { attempts: 4, sleep, random: () => 0.5, onRetry: (reason) => void this.notes.push(reason) },
      stallMs,
    });
    const progress = {
      start: () => ({ update() {}, stop() {} }),
      note: (line: string) => void this.notes.push(line),
    };
    return pull({ repository: NAME, revision: 'main', ...request }, { client, cache, progress, sleep });
  }

  /** The message a pull fails with; it must be one line. */
  async fault(...args: Parameters<PullStage['run']>): Promise<string> {
    const error = await this.run(...args).then(
      () => new Error('it did not fail'),
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
