import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { CommandError } from "../terminal.ts";

/**
 * Returns a value as a shell reads it, which replaces dollar signs, backticks and backslashes within
 * double quotes.
 */
const shellText = (value: string): string =>
  /[$`\\"!\n\r]/.test(value) ? `'${value.replaceAll("'", "'\\''")}'` : JSON.stringify(value);

/** A variable with its value, which may have several lines within its quotes. */
const assignment = /^([A-Za-z_]\w*)=((?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^'"\\\n])*)$/gm;

/**
 * Returns the text of a file of variables with those of an import in it. What else is in the file
 * stays. Throws `CommandError` where the file has other values of them, unless they are replaced.
 */
export function withVariables(
  path: string,
  variables: ReadonlyMap<string, string>,
  { force }: { force: boolean },
): string {
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  const found = new Set<string>();
  const changed = new Set<string>();
  const kept = before.replaceAll(assignment, (line, name: string, text: string) => {
    const value = variables.get(name);
    if (value === undefined) return line;
    found.add(name);
    if (text !== shellText(value) && text !== value) changed.add(name);
    return `${name}=${shellText(value)}`;
  });
  if (changed.size > 0 && !force)
    throw new CommandError(
      `${path} has other values of ${[...changed].join(", ")}: replace them with --force, ` +
        "or name a configuration in another folder with --config",
      2,
    );
  const added = [...variables]
    .filter(([name]) => !found.has(name))
    .map(([name, value]) => `${name}=${shellText(value)}\n`);
  return `${kept}${kept === "" || kept.endsWith("\n") ? "" : "\n"}${added.join("")}`;
}

/** Writes a file of variables, which only its user can read. */
export function writeVariables(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  chmodSync(path, 0o600);
}
