import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { StreamPart } from "../../src/inference/canonical/response.ts";

/** A recorded stream and its meaning. */
export interface Cassette {
  name: string;
  bytes: Uint8Array;
  parts: StreamPart[];
}

/** Returns every cassette of a dialect, sorted by name. */
export function readCassettes(dialect: string): Cassette[] {
  const folder = join(import.meta.dir, "..", "cassettes", dialect);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".chunks.txt"))
    .sort()
    .map((file) => {
      const name = file.slice(0, -".chunks.txt".length);
      const lines = readFileSync(join(folder, `${name}.parts.txt`), "utf8")
        .trim()
        .split("\n");
      return {
        name,
        bytes: readFileSync(join(folder, file)),
        parts: lines.map((line) => JSON.parse(line) as StreamPart),
      };
    });
}
