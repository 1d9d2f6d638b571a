import { closeSync, openSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** The limit of open files of this process, which Bun raises as far as the system lets; undefined where the system does not say. */
export function openFilesMax(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    // Systems without /proc, such as macOS.
    return undefined;
  }
}

/** Below this many files the gateway warns: each request takes two, its client's connection and its provider's. */
const comfortableFiles = 8_192;

/** What an operator has to know of the limit of open files; undefined where it is high enough. */
export const openFilesWarning = (limit = openFilesMax()): string | undefined =>
  limit === undefined || limit >= comfortableFiles
    ? undefined
    : `only ${limit} files may be open at once, connections included; raise the limit (ulimit -n, LimitNOFILE) to ${comfortableFiles}`;

/** From this part of the limit on it counts as nearly reached. */
const nearlyPart = 0.8;

/** Whether nearly as many files are open as may be. The system gives the lowest free number to a file that is opened: about the count. */
export function isNearlyOutOfFiles(limit: number): boolean {
  try {
    const file = openSync("/dev/null", "r");
    closeSync(file);
    return file > limit * nearlyPart;
  } catch {
    // Not one more can be opened.
    return true;
  }
}

/** Connections to a local port by the kernel's table; NaN where there is none. */
export async function countConnections(port: number): Promise<number> {
  const tables = await Promise.all(
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map((path) =>
      readFile(path, "latin1").catch(() => ""),
    ),
  );
  if (tables.every((table) => table === "")) return Number.NaN;
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  // Local address and port, remote address and port, and 01 for an established connection.
  const row = new RegExp(`^ *\\d+: [0-9A-F]+:${hexPort} [0-9A-F]+:[0-9A-F]{4} 01 `, "gm");
  return tables.reduce((sum, table) => sum + (table.match(row)?.length ?? 0), 0);
}
