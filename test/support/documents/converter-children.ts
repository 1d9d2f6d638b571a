import { readdirSync, readFileSync } from "node:fs";

/** A file of another process; empty where that has ended meanwhile. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/**
 * Process ids of the converters that a process has started, by what the system knows; undefined
 * where it has no `/proc`.
 */
export function converterChildren(parentPid = process.pid): number[] | undefined {
  if (process.platform !== "linux") return undefined;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      // The name of the program stands in brackets and may have anything in it; behind it come the
      // state and the parent.
      const [, parent] = textOf(`/proc/${pid}/stat`)
        .replace(/^.*\) /s, "")
        .split(" ");
      return (
        parent === String(parentPid) && textOf(`/proc/${pid}/cmdline`).includes("converter-child")
      );
    });
}
