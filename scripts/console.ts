/** `npm run console`: the console as its sources are, in front of a gateway that runs; and what scripts/build.ts makes it with. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { InlineConfig, Plugin } from 'vite';
import { parse } from 'yaml';
import { nameOf, type Schema } from '../src/console/documents.ts';
import { de } from '../src/console/words.de.ts';
import { en } from '../src/console/words.en.ts';
import { filledPage } from '../src/platform/http/pages.ts';

const USAGE = `usage: npm run console -- [--gateway URL]

  --gateway URL     whose interface the pages use (default https://127.0.0.1:8443, which is that of npm run demo)`;

const BOUNDS = [
  'additionalProperties',
  'pattern',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'maxItems',
  'contentType',
];
/** Of each event, and the same in all of them: words of the page name them. */
const OF_ALL_EVENTS = ['specversion', 'time', 'datacontenttype', 'clocksynced'];
/** A field may have such a name: its value is a schema then. Most fields are required: those that are not are named. */
function shortened(name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return BOUNDS.includes(name) ? undefined : value;
  const { properties, required = [], ...schema } = value as { properties?: object; required?: string[] };
  if (!properties) return value;
  const own = Object.entries(properties).filter(
    ([field]) => !('specversion' in properties && OF_ALL_EVENTS.includes(field)),
  );
  const optional = own.flatMap(([field]) => (required.includes(field) ? [] : field));
  return { ...schema, properties: Object.fromEntries(own), ...(optional.length > 0 && { optional }) };
}

/** A page shows docs/asyncapi.yaml as src/console/documents.ts has it, what is said and not who says it; it has no parser. */
const yamlDocuments: Plugin = {
  name: 'yaml-documents',
  transform: {
    filter: { id: /\.yaml$/ },
    handler(text) {
      const { channels, components } = parse(text) as {
        channels: Record<
          string,
          { address: string; description: string; servers: Schema[]; messages: object }
        >;
        components: { messages: Record<string, { payload: Schema }>; schemas: object };
      };
      const shown = {
        channels: Object.values(channels).map(({ address, description, servers, messages }) => ({
          address,
          description,
          server: nameOf(servers[0]?.$ref ?? ''),
          schemas: Object.keys(messages).map((name) => nameOf(components.messages[name]?.payload.$ref ?? '')),
        })),
        schemas: components.schemas,
      };
      return { code: `export const document = ${JSON.stringify(shown, shortened)};`, map: null };
    },
  },
};

/** All styles are in one file, so that a part that is loaded later needs nothing before it: what Vite would load is left out. */
const noPreloads: Plugin = {
  name: 'no-preloads',
  transform: {
    filter: { id: /vite\/preload-helper/ },
    handler: () => ({ code: 'export const __vitePreload = (load) => load();', map: null }),
  },
};

/** The code of the pages is asked for together with the first script, which imports it. */
const preloadedPages: Plugin = {
  name: 'preloaded-pages',
  transformIndexHtml: {
    order: 'post',
    handler: (_, { bundle = {} }) =>
      Object.values(bundle)
        .filter((part) => part.type === 'chunk' && part.name === 'app')
        .map(({ fileName }) => ({
          tag: 'link',
          attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` },
          injectTo: 'head',
        })),
  },
};

/** Each language has the same keys: in the order of English they are there once. */
const wordsInOrder: Plugin = {
  name: 'words-in-order',
  apply: 'build',
  transform: {
    filter: { id: /words\.de\.ts$/ },
    handler: () => {
      const words = (Object.keys(en) as (keyof typeof en)[]).map((key) => de[key]);
      return {
        code: `import { en } from './words.en.ts';
const words = ${JSON.stringify(words)};
export const de = Object.fromEntries(Object.keys(en).map((key, index) => [key, words[index]]));`,
        map: null,
      };
    },
  },
};

/** What of js-yaml's writer is made by calls as it is loaded; with it all of the writer, and YAML 1.1, would stay. */
const WRITER_DEFAULTS = [
  /(?<=var DUMP_SCHEMA = )[\s\S]*?\n\}\)(?=;\n)/,
  /Object\.keys\(DEFAULT_SCALAR_STYLE_RULES\)\.map\(.*\)(?=,\n)/,
];
const yamlReaderAlone: Plugin = {
  name: 'yaml-reader-alone',
  transform: {
    filter: { id: /js-yaml\.mjs$/ },
    handler: (code) => ({
      code: WRITER_DEFAULTS.reduce((text, made) => text.replace(made, 'undefined'), code),
      map: null,
    }),
  },
};

/** Of js-yaml: they only make what they return. */
const YAML_MAKERS = [
  'RegExp',
  'Schema',
  'YAML11_SCHEMA.withTags',
  'defineScalarTag',
  'defineSequenceTag',
  'defineMappingTag',
];

export function consoleSettings(root: string): InlineConfig {
  return {
    configFile: false,
    root: join(root, 'src/console'),
    // Pages and files are served at the root whatever the base path of the interface is.
    base: '/',
    logLevel: 'warn',
    plugins: [wordsInOrder, yamlDocuments, yamlReaderAlone, noPreloads, preloadedPages],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
    // The map names the libraries for the package's copyright file; browsers do not ask for it.
    build: {
      sourcemap: 'hidden',
      target: 'es2022',
      modulePreload: false,
      cssCodeSplit: false,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      // js-yaml makes the schemas of YAML 1.1, and what writes YAML, as it is loaded: without them it is a third smaller.
      rolldownOptions: { treeshake: { manualPureFunctions: YAML_MAKERS } },
    },
  };
}

async function serve(): Promise<void> {
  const { values } = parseArgs({
    options: {
      gateway: { type: 'string', default: 'https://127.0.0.1:8443' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return console.log(USAGE);
  const { createServer } = await import('vite');
  const root = join(import.meta.dirname, '..');
  const { paths } = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as { paths: object };
  const segments = new Set(Object.keys(paths).map((path) => path.split('/')[1]));
  const settings = consoleSettings(root);
  const fill: Plugin = {
    name: 'fill',
    transformIndexHtml: (html) => filledPage(html, { api: '', doors: 'access' }),
  };
  const server = await createServer({
    ...settings,
    // Its address is printed as information.
    logLevel: 'info',
    plugins: [...(settings.plugins ?? []), fill],
    server: {
      host: 'localhost',
      // The certificate is of a site's own authority, which this process does not know.
      proxy: { [`^/(${[...segments].join('|')})(/|\\?|$)`]: { target: values.gateway, secure: false } },
    },
  });
  await server.listen();
  server.printUrls();
}

if (import.meta.main) await serve();
