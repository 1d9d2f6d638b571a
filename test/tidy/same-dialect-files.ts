import { basename } from "node:path";
import type { Finding, Rule } from "./rule.ts";

/** What every dialect folder has: both directions of requests, answers, streams and errors. */
const dialectFiles = [
  "decode-request.ts", "encode-request.ts", "decode-response.ts", "encode-response.ts", "decode-stream.ts", "encode-stream.ts",
  "encode-error.ts",
];

/** Dialect folders have the same files, so that knowing one is knowing all. */
export const sameDialectFiles: Rule = {
  name: "dialect folders look alike",
  fix: `Each has ${dialectFiles.join(", ")} and a file of its own name.`,
  check({ paths }): Finding[] {
    const folders = [...paths].filter((path) => /^src\/inference\/dialects\/[^/.]+$/.test(path));
    return folders.flatMap((folder) => [...dialectFiles, `${basename(folder)}.ts`]
      .filter((name) => !paths.has(`${folder}/${name}`))
      .map((name) => ({ path: folder, problem: `has no ${name}` })));
  },
};
