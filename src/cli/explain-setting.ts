import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "../documentation/setting-texts.ts";
import { CommandError, type Terminal } from "./terminal.ts";

const examplePath = join(import.meta.dir, "..", "..", "switchyard.example.yaml");

/**
 * Shows a key of switchyard.yaml: its type, default and meaning, and the keys below it. Throws
 * `CommandError` where there is none of this name.
 */
export function explainSetting(terminal: Terminal, wanted: string): void {
  const every = settings(readFileSync(examplePath, "utf8"));
  const path = wanted.trim();
  const found = every.find((setting) => setting.path === path || plain(setting.path) === path);
  if (found === undefined) {
    const last = path.split(".").at(-1) ?? path;
    const near = every.filter((setting) => plain(setting.path).split(".").at(-1) === last);
    const hint =
      near.length === 0
        ? "The page /docs/reference/configuration lists them."
        : `Did you mean ${near
            .slice(0, 5)
            .map((setting) => setting.path)
            .join(", ")}?`;
    throw new CommandError(`switchyard.yaml has no key ${path}. ${hint}`);
  }
  if (terminal.result(found)) return;
  terminal.line(found.path);
  terminal.line(`  ${found.text}`);
  terminal.line(`  type     ${found.type}`);
  terminal.line(`  default  ${found.standard === "" ? "none" : found.standard}`);
  if (found.example !== "") terminal.line(`  example  ${found.example}`);
  const below = every.filter(
    (setting) => setting.path !== found.path && isChild(found.path, setting.path),
  );
  for (const { path: child, text } of below) terminal.line(`  ${child}: ${text}`);
}

/** Returns a path without the marks of lists. */
const plain = (path: string): string => path.replaceAll("[]", "");

/** Returns whether a path is directly below another. */
const isChild = (parent: string, path: string): boolean =>
  path.startsWith(parent) && /^(?:\[\])?\.[^.[]+(?:\[\])?$/.test(path.slice(parent.length));
