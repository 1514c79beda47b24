/** Cuts an SSE text stream into its events; comments, which keep connections alive, are left out. */
export class EventBlocks {
  #pending = '';

  /** The events completed by `fragment`, each without its empty line. */
  push(fragment: string): string[] {
    const blocks = (this.#pending + fragment).split('\n\n');
    this.#pending = blocks.pop() ?? '';
    return blocks.filter((block) => block.startsWith('data:'));
  }
}
