import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';

/** The user in the chroot, who owns nothing but the home directory. */
const USER = 1000;
const NODE = '/opt/node';
/** Seen in the chroot and read-only there: the system's libraries, devices and processes. */
const MOUNTED = ['usr', 'dev', 'proc'];
/** Merged directories of current distributions. */
const LINKS = ['bin', 'lib', 'lib64'];

const mounts = (root: string) => MOUNTED.map((name) => `mount --bind -o ro /${name} ${root}/${name}`);

/** Mounts need Linux and root rights, and a container may deny them. */
export const hasChroot =
  process.platform === 'linux' &&
  spawnSync('unshare', ['--mount', 'mount', '--bind', '/usr', '/usr']).status === 0;

/** A root directory without the checkout, without /etc and with this Node. */
export class Chroot {
  readonly root: string;
  /** Where packages are installed, as a path of the host. */
  readonly app: string;
  readonly #variables: Readonly<Record<string, string>>;

  /** @param parent in the file system of the packages, so that they can be linked */
  constructor(parent: string, variables: Readonly<Record<string, string>>) {
    mkdirSync(parent, { recursive: true });
    this.root = mkdtempSync(path.join(parent, 'chroot-'));
    this.app = path.join(this.root, 'app');
    for (const name of [...MOUNTED, 'app', 'tmp', 'home', `${NODE}/bin`])
      mkdirSync(path.join(this.root, name), { recursive: true });
    for (const name of LINKS) symlinkSync(`usr/${name}`, path.join(this.root, name));
    cpSync(process.execPath, path.join(this.root, NODE, 'bin/node'), { dereference: true });
    for (const name of ['', 'app', 'tmp', 'home']) execFileSync('chmod', ['755', path.join(this.root, name)]);
    for (const name of ['tmp', 'home'])
      execFileSync('chown', [`${USER}:${USER}`, path.join(this.root, name)]);
    this.#variables = { HOME: '/home', PATH: `/app/node_modules/.bin:${NODE}/bin:/usr/bin`, ...variables };
  }

  /** Starts a program as an ordinary user. The process that is returned is the program itself. */
  start(command: readonly string[]): { readonly child: ChildProcess; output(): string } {
    const variables = Object.entries(this.#variables).map(([name, value]) => `${name}=${value}`);
    const chroot = ['chroot', `--userspec=${USER}:${USER}`, this.root, '/usr/bin/env', '-i', ...variables];
    const script = [...mounts(this.root), 'exec "$@"'].join(' && ');
    const child = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', ...chroot, ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    return { child, output: () => output };
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
