/** `gatehouse completion`: a script with which a shell completes commands and options. Of bash, and of zsh by its bashcompinit. */

/** The part of a command that is needed here. */
export interface Completed {
  name(): string;
  commands: readonly Completed[];
  options: readonly { long?: string | undefined }[];
}

/** Words that may follow each command, by its path: `token create`. */
function wordsOf(command: Completed, path: string): [string, string[]][] {
  const options = command.options.flatMap(({ long }) => long ?? []);
  const names = command.commands.map((one) => one.name());
  return [
    [path, [...names, ...options, '--help']],
    ...command.commands.flatMap((one) => wordsOf(one, path === '' ? one.name() : `${path} ${one.name()}`)),
  ];
}

export function completionScript(program: Completed): string {
  const all = wordsOf(program, '');
  const paths = all.slice(1).map(([path]) => `'${path}'`);
  const cases = all.map(([path, words]) => `    '${path}') words='${words.join(' ')}' ;;`);
  return `# eval "$(gatehouse completion)" in ~/.bashrc; in ~/.zshrc after: autoload -U +X bashcompinit && bashcompinit
_gatehouse() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path='' words='' word next
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join('|')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gatehouse gatehouse
`;
}
