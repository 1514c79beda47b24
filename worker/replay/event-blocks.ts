/** Cuts an SSE text stream into its events; comments, which keep connections alive, are left out. */
export class EventBlocks {
  #pending = '';

  /** The events completed by `fragment`, each without its empty line. */
  push(fragment: string): string[] {
    // Long events come in many fragments: to look through all of them again at each would take the square of the time.
    if (!fragment.includes('\n')) {
      this.#pending += fragment;
      return [];
    }
    const blocks = (this.#pending + fragment).split('\n\n');
    this.#pending = blocks.pop() ?? '';
    return blocks.filter((block) => block.startsWith('data:'));
  }
}
