import { type ComponentChild, type ContainerNode, options, render } from 'preact';
import { onTestFinished, vi } from 'vitest';

/**
 * Renders components without a browser: what they show, and what their buttons, fields and own keys do.
 * Layout, focus and the keys of the browser need one.
 */

type Listener = (this: SmallNode, event: object) => void;

/** The part of the DOM that Preact and the components write to. */
export class SmallNode {
  readonly nodeType: 1 | 3;
  readonly localName: string;
  data: string;
  parentNode: SmallNode | null = null;
  readonly childNodes: SmallNode[] = [];
  readonly attributes = new Map<string, string>();
  readonly namespaceURI: string | null = null;
  readonly style = { setProperty: () => undefined };
  /** Preact writes to these in lower case. */
  readonly onclick = null;
  readonly oninput = null;
  readonly onchange = null;
  readonly onblur = null;
  readonly onkeydown = null;
  readonly onsubmit = null;
  value = '';
  readonly #listeners = new Map<string, Listener>();

  /** @param localName name of an element; '' = a text */
  constructor(nodeType: 1 | 3, localName: string, data: string) {
    this.nodeType = nodeType;
    this.localName = localName;
    this.data = data;
  }

  get id(): string | undefined {
    return this.attributes.get('id');
  }
  get firstChild(): SmallNode | null {
    return this.childNodes[0] ?? null;
  }
  get nextSibling(): SmallNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }
  get children(): SmallNode[] {
    return this.childNodes.filter(({ nodeType }) => nodeType === 1);
  }
  get lastElementChild(): SmallNode | null {
    return this.children.at(-1) ?? null;
  }
  get textContent(): string {
    return this.data + this.childNodes.map((child) => child.textContent).join('');
  }

  insertBefore(node: SmallNode, before: SmallNode | null): SmallNode {
    node.parentNode?.removeChild(node);
    node.parentNode = this;
    this.childNodes.splice(
      before === null ? this.childNodes.length : this.childNodes.indexOf(before),
      0,
      node,
    );
    return node;
  }
  removeChild(node: SmallNode): SmallNode {
    this.childNodes.splice(this.childNodes.indexOf(node), 1);
    node.parentNode = null;
    return node;
  }
  remove(): void {
    this.parentNode?.removeChild(this);
  }
  contains(node: SmallNode | null): boolean {
    return node !== null && (node === this || this.contains(node.parentNode));
  }
  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name, String(value));
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }
  addEventListener(name: string, listener: Listener): void {
    this.#listeners.set(name, listener);
  }
  removeEventListener(name: string): void {
    this.#listeners.delete(name);
  }

  /** Nothing has a place. */
  getBoundingClientRect(): Readonly<Record<string, number>> {
    return { left: 0, top: 0, right: 0, bottom: 0, width: 0, height: 0 };
  }
  closest(): SmallNode {
    return this;
  }
  /** Dialogs are open as long as they are rendered. */
  showModal(): void {}
  close(): void {}
  focus(): void {}

  /** Elements in the order of the page. */
  *elements(): Generator<SmallNode> {
    if (this.nodeType === 1) yield this;
    for (const child of this.childNodes) yield* child.elements();
  }
  dispatch(type: string, event: object = {}): void {
    const nothing = () => undefined;
    const common = {
      ...{ type, currentTarget: this, target: this },
      ...{ stopPropagation: nothing, preventDefault: nothing },
    };
    this.#listeners.get(type)?.call(this, { ...common, ...event });
  }
}

const FIELDS = ['input', 'textarea', 'select'];

export interface Rendered {
  /** All text. */
  text(): string;
  /** Returns the elements of a name, such as `td`, whose text has a part. */
  all(name: string, part?: string): SmallNode[];
  /** Presses the button with this text. @throws if there is none, or it is disabled */
  press(text: string): void;
  /** Sends the form that has the button with this text. @throws if there is none, or it is disabled */
  submit(text: string): void;
  /** Returns the field with this label. */
  field(label: string): SmallNode;
  /** Writes into the field with this label, which has the focus from then on. */
  write(label: string, text: string): void;
  /** Gives the focus to nothing. */
  leave(): void;
}

// Looks the timer up at each call, because tests may replace it.
options.requestAnimationFrame = (callback) => void setTimeout(callback);

/** Renders until the end of the test. */
export function rendered(child: ComponentChild): Rendered {
  const root = new SmallNode(1, 'body', '');
  const document = {
    hidden: false,
    activeElement: null as SmallNode | null,
    createElementNS: (_: string, name: string) => new SmallNode(1, name, ''),
    createTextNode: (text: string) => new SmallNode(3, '', text),
    // No field shows a fault.
    querySelectorAll: () => [],
  };
  vi.stubGlobal('document', document);
  vi.stubGlobal('innerWidth', 0);
  vi.stubGlobal('innerHeight', 0);
  const container = root as unknown as ContainerNode;
  render(child, container);
  onTestFinished(() => render(null, container));
  const all = (name: string, part = '') =>
    [...root.elements()].filter(
      ({ localName, textContent }) => localName === name && textContent.includes(part),
    );
  const field = (label: string) =>
    [...root.elements()].find((element) => {
      const { localName, id, attributes } = element;
      if (!FIELDS.includes(localName)) return false;
      const [named] = all('label').filter(
        (each) => each.contains(element) || (id && each.attributes.get('for') === id),
      );
      return (attributes.get('aria-label') ?? named?.textContent) === label;
    })!;
  const enabled = (text: string) => {
    const button = all('button').find(({ textContent }) => textContent === text);
    if (button === undefined || button.attributes.has('disabled'))
      throw new Error(`There is no enabled button "${text}": ${root.textContent}`);
    return button;
  };
  return {
    text: () => root.textContent,
    all,
    field,
    press: (text) => enabled(text).dispatch('click'),
    submit(text) {
      const button = enabled(text);
      all('form')
        .find((form) => form.contains(button))!
        .dispatch('submit');
    },
    write(label, text) {
      document.activeElement = field(label);
      document.activeElement.value = text;
      document.activeElement.dispatch('input');
    },
    leave() {
      document.activeElement?.dispatch('blur');
      document.activeElement = null;
    },
  };
}
