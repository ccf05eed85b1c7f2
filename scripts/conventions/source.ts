/**
 * Splits a TypeScript file into code and comments without understanding it: both keep the length of the text, with
 * everything else blanked, so that an offset is the same place in all three.
 */
import { posix } from 'node:path';

export interface Source {
  /** From the root of the project, with slashes. */
  path: string;
  text: string;
  /** Without comments and without what stands between quotes. */
  code: string;
  /** The comments alone. */
  comments: string;
  imports: Import[];
  /** Offsets and contents of plain strings. */
  strings: { offset: number; content: string }[];
}

export interface Import {
  offset: number;
  /** As written, such as ../clock.ts or node:fs. */
  specifier: string;
  /** From the root of the project when the specifier is relative. */
  path: string | undefined;
  typeOnly: boolean;
}

export function parseSource(path: string, text: string): Source {
  const { code, comments, strings } = split(text);
  const contents = new Map(strings.map(({ offset, content }) => [offset, content]));
  const imports = [...code.matchAll(IMPORT)].map((found): Import => {
    const quote = found.index + found[0].length - 2 - (found.groups?.blank ?? '').length;
    const specifier = contents.get(quote) ?? '';
    const relative = specifier.startsWith('.');
    return {
      offset: found.index,
      specifier,
      path: relative ? posix.join(posix.dirname(path), specifier) : undefined,
      typeOnly: TYPE_ONLY.test(found[0]),
    };
  });
  return { path, text, code, comments, imports, strings };
}

export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** `import … from '…'`, `export … from '…'`, `import '…'`, `import('…')`; the contents of strings are blank here. */
const IMPORT = /\b(?:(?:import|export)\s[\w\s{},*$]*?\bfrom\s*|import\s*\(?\s*)['"](?<blank> *)['"]/g;
/** `import type …`, or braces in which every name is a type. */
const TYPE_ONLY = /^(?:import|export)\s+(?:type\b|\{(?:\s*type\s+[\w$\s]+,?)+\s*\})/;

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y;
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y;
const REGEX = /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const WORD = /[A-Za-z_$][\w$]*/y;
/** After these a slash begins a regular expression; after anything else it divides. */
const BEFORE_REGEX =
  /(?:^|[(,=:[!&|?{;+\-*%<>~^]|\b(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield))$/;

function split(text: string): Pick<Source, 'code' | 'comments' | 'strings'> {
  const strings: Source['strings'] = [];
  let code = '';
  let comments = '';
  let at = 0;
  /** For each template literal around: how many braces are open in its ${…}. */
  const templates: number[] = [];

  const take = (length: number, kind: 'code' | 'comment' | 'blank') => {
    const piece = text.slice(at, at + length);
    code += kind === 'code' ? piece : blank(piece);
    comments += kind === 'comment' ? piece : blank(piece);
    at += length;
  };
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  /** From after a backtick or the brace that ends ${…}, to the next backtick or ${. */
  const takeTemplate = () => {
    const end = /(?:[^\\`$]|\\[\s\S]|\$(?!\{))*/y;
    take(match(end), 'blank');
    if (text[at] === '`') return take(1, 'code');
    take(2, 'code');
    templates.push(0);
  };

  while (at < text.length) {
    const character = text[at];
    const comment = match(COMMENT);
    const string = comment === 0 ? match(STRING) : 0;
    if (comment > 0) take(comment, 'comment');
    else if (string > 0) {
      strings.push({ offset: at, content: text.slice(at + 1, at + string - 1) });
      take(1, 'code');
      take(string - 2, 'blank');
      take(1, 'code');
    } else if (character === '`') {
      take(1, 'code');
      takeTemplate();
    } else if (character === '}' && templates.at(-1) === 0) {
      templates.pop();
      take(1, 'code');
      takeTemplate();
    } else if (character === '/' && match(REGEX) > 0 && BEFORE_REGEX.test(code.trimEnd().slice(-12))) {
      take(match(REGEX), 'blank');
    } else {
      const depth = templates.length - 1;
      if (depth >= 0 && character === '{') templates[depth] = (templates[depth] ?? 0) + 1;
      if (depth >= 0 && character === '}') templates[depth] = (templates[depth] ?? 0) - 1;
      take(match(WORD) || 1, 'code');
    }
  }
  return { code, comments, strings };
}

function blank(piece: string): string {
  return piece.replace(/[^\n]/g, ' ');
}
