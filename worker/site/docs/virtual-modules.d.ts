declare module 'virtual:guides' {
  /** Groups of guides in reading order. */
  export const GROUPS: readonly {
    readonly title: string;
    readonly guides: readonly { readonly name: string; readonly title: string; readonly summary: string }[];
  }[];
  /** Loads each guide by its name. */
  export const GUIDES: Readonly<Record<string, () => Promise<typeof import('virtual:guide/name')>>>;
}

declare module 'virtual:guide/name' {
  export const GUIDE: {
    readonly title: string;
    readonly html: string;
    readonly headings: readonly { readonly id: string; readonly title: string }[];
  };
}

declare module 'virtual:guide-places' {
  /** The sections of all guides. */
  export const PLACES: readonly import('./search/search-options.ts').Found[];
}
