import { readdirSync, readFileSync } from "node:fs";

/** Returns the text of a file in `/proc`; empty where its process has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/**
 * Returns the process ids of the converters that a process has started, according to the system;
 * undefined on systems without `/proc`.
 */
export function converterChildren(parentPid = process.pid): number[] | undefined {
  if (process.platform !== "linux") return undefined;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      // The program's name is in parentheses and may contain anything; after it come the state and
      // the parent.
      const [, parent] = textOf(`/proc/${pid}/stat`)
        .replace(/^.*\) /s, "")
        .split(" ");
      return (
        parent === String(parentPid) && textOf(`/proc/${pid}/cmdline`).includes("converter-child")
      );
    });
}
