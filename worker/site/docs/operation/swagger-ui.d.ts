/** The part of Swagger UI that the page uses. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export type Props = Readonly<Record<string, unknown>>;
  /** An Immutable.js collection. */
  export interface Collection {
    readonly size: number;
    get(name: string): unknown;
    getIn(path: readonly string[]): unknown;
    setIn(path: readonly string[], value: unknown): Collection;
    first(): unknown;
    keySeq(): { toList(): List };
    clear(): Collection;
    delete(name: string): Collection;
    filter(accepts: (item: Collection) => boolean): Collection;
    toObject(): Props;
    toJS(): Props;
  }
  export interface List {
    clear(): List;
    concat(values: readonly string[]): List;
    push(value: string): List;
  }
  export interface React {
    createElement(component: unknown, props?: object | null, ...children: unknown[]): unknown;
  }
  export interface SwaggerRequest {
    readonly headers: Record<string, string>;
  }
  /** How Swagger UI words types and limits of a JSON Schema. */
  export interface SchemaWording {
    getType(schema: object): string;
    stringifyConstraints(schema: object): readonly { readonly value: string }[];
  }
  export interface System {
    readonly React: React;
    getSystem(): { readonly fn: { readonly jsonSchema202012: { useFn(): SchemaWording } } };
  }
  export interface Options {
    readonly domNode: Element;
    readonly spec: unknown;
    readonly layout: string;
    readonly presets: readonly unknown[];
    readonly plugins: readonly ((system: System) => unknown)[];
    readonly requestInterceptor: (request: SwaggerRequest) => SwaggerRequest;
    readonly [option: string]: unknown;
  }
  interface SwaggerUi {
    (options: Options): unknown;
    readonly presets: { readonly apis: unknown };
  }
  const swaggerUi: SwaggerUi;
  // biome-ignore lint/style/noDefaultExport: the package exports it so
  export default swaggerUi;
}
