import type { Command } from "commander";
import { CommandError } from "./terminal.ts";

/** Shells that completion is written for. */
export const shells = ["bash", "zsh", "fish"] as const;

/** Words that may follow each command, by its words: `keys` to `create list revoke --help`. */
function wordsBelow(command: Command, path = ""): Map<string, string[]> {
  const own = [
    ...command.commands.map((each) => each.name()),
    ...command.options.flatMap(({ long }) => long ?? []),
    "--help",
  ];
  const words = new Map([[path, own]]);
  for (const child of command.commands) {
    for (const [below, found] of wordsBelow(
      child,
      path === "" ? child.name() : `${path} ${child.name()}`,
    ))
      words.set(below, found);
  }
  return words;
}

const bashScript = (words: Map<string, string[]>): string => `_switchyard() {
  local path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$word" == -* ]] || path="\${path:+$path }$word"
  done
  local words=""
  case "$path" in
${[...words].map(([path, found]) => `    "${path}") words="${found.join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _switchyard switchyard
`;

const zshScript = (words: Map<string, string[]>): string => `#compdef switchyard
autoload -U +X bashcompinit && bashcompinit
${bashScript(words)}`;

const fishScript = (words: Map<string, string[]>): string =>
  [...words]
    .map(([path, found]) => {
      const condition =
        path === ""
          ? "__fish_use_subcommand"
          : `__fish_seen_subcommand_from ${path.split(" ").at(-1)}`;
      return `complete -c switchyard -f -n '${condition}' -a '${found.join(" ")}'`;
    })
    .join("\n")
    .concat("\n");

/** The script that completes the command's words in a shell. */
export function completionScript(program: Command, shell: string): string {
  const words = wordsBelow(program);
  if (shell === "bash") return bashScript(words);
  if (shell === "zsh") return zshScript(words);
  if (shell === "fish") return fishScript(words);
  throw new CommandError(`expected ${shells.join(", ")}, got ${shell}`, 2);
}
