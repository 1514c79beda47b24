import { withExamples } from '@continuo/origin/terminal/program.ts';
import type { Terminal } from '@continuo/origin/terminal/terminal.ts';
import { Argument, type Command, type Option } from 'commander';

/**
 * Shell completion. A script asks `continuo candidates -- <words>` at each Tab. It passes the words as arguments and never
 * evaluates them, because they may be any text.
 */

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Without candidates, each shell offers files. */
const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_continuo() {
  local IFS=$'\\n'
  COMPREPLY=($(continuo candidates -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _continuo continuo`,
  zsh: `#compdef continuo
_continuo() {
  local -a candidates
  candidates=("\${(@f)$(continuo candidates -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $candidates ]]; then
    candidates=("\${(@)candidates//$'\\t'/:}")
    _describe continuo candidates
  else
    _files
  fi
}
compdef _continuo continuo`,
  fish: `function __continuo_candidates
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates (continuo candidates -- $words[2..] 2>/dev/null)
  if set -q candidates[1]
    printf '%s\\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c continuo -f -a '(__continuo_candidates)'`,
};

export function addCompletionCommands(program: Command, terminal: Terminal): void {
  const completion = program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'shell').choices(SHELLS));
  withExamples(
    completion,
    'source <(continuo completion bash)   # in ~/.bashrc',
    'source <(continuo completion zsh)    # in ~/.zshrc, after compinit',
    'continuo completion fish > ~/.config/fish/completions/continuo.fish',
  ).action((shell: Shell) => terminal.print(SCRIPTS[shell]));
  program
    .command('candidates [words...]', { hidden: true })
    .description('print what may be the last word, with descriptions after a tab')
    .action((words: readonly string[]) => {
      for (const { value, description } of candidatesFor(program, words)) {
        terminal.print(`${value}\t${description}`);
      }
    });
}

interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** @param words after the program's name; the last is being typed */
function candidatesFor(program: Command, words: readonly string[]): Candidate[] {
  const typed = words.at(-1) ?? '';
  const { command, option } = parsed(program, words.slice(0, -1));
  const found =
    option !== null
      ? (option.argChoices ?? []).map((value) => ({ value, description: '' }))
      : typed.startsWith('-')
        ? optionsOf(command).map(({ long, short, description }) => ({ value: long ?? short!, description }))
        : [...subcommandsOf(command), ...choicesOf(command)];
  return found.filter(({ value }) => value.startsWith(typed));
}

/** Follows the words to a command and, if the next word is the value of an option, to that option. */
function parsed(program: Command, words: readonly string[]): { command: Command; option: Option | null } {
  let command = program;
  let option: Option | null = null;
  for (const word of words) {
    if (option !== null) option = null;
    else if (word.startsWith('-')) {
      const named = optionsOf(command).find(({ long, short }) => word === long || word === short);
      option = named?.required ? named : null;
    } else command = command.commands.find((sub) => sub.name() === word) ?? command;
  }
  return { command, option };
}

/** Options of a command and of the commands above it. */
function optionsOf(command: Command): readonly Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
}

const subcommandsOf = (command: Command): Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((sub) => ({ value: sub.name(), description: sub.description() }));

const choicesOf = ({ registeredArguments: [argument] }: Command): Candidate[] =>
  (argument?.argChoices ?? []).map((value) => ({ value, description: '' }));
