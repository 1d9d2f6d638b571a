import { basename } from "node:path";
import type { Finding, Rule } from "./rule.ts";

/** What every dialect folder has: the side that faces upstreams. */
const upstreamFiles = ["encode-request.ts", "decode-response.ts", "decode-stream.ts"];

/** What a dialect has that clients speak too; one of them asks for all. */
const clientFiles = [
  "decode-request.ts",
  "encode-response.ts",
  "encode-stream.ts",
  "encode-error.ts",
];

/** Dialect folders have the same files, so that knowing one is knowing all. */
export const sameDialectFiles: Rule = {
  name: "dialect folders look alike",
  fix: `Each has ${upstreamFiles.join(", ")} and a file of its own name; one for clients has ${clientFiles.join(", ")} too.`,
  check({ paths }): Finding[] {
    const folders = [...paths].filter((path) => /^src\/inference\/dialects\/[^/.]+$/.test(path));
    return folders.flatMap((folder) => {
      const facesClients = clientFiles.some((name) => paths.has(`${folder}/${name}`));
      return [...upstreamFiles, ...(facesClients ? clientFiles : []), `${basename(folder)}.ts`]
        .filter((name) => !paths.has(`${folder}/${name}`))
        .map((name) => ({ path: folder, problem: `has no ${name}` }));
    });
  },
};
