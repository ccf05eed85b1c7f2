/** docs/asyncapi.yaml, as scripts/console.ts hands it to the pages. */
declare module '*.yaml' {
  export const document: import('./documents.ts').AsyncApi;
}
