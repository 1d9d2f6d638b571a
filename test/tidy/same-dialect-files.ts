import type { Finding, Rule } from "./rule.ts";

/** The files of every dialect: the side that faces upstreams, and what both sides share. */
const upstreamFiles = [
  "index.ts",
  "encode-request.ts",
  "decode-response.ts",
  "decode-stream.ts",
  "answer-fields.ts",
  "usage.ts",
  "errors.ts",
];

/** The files of a dialect that clients speak too; one of them asks for all. */
const clientFiles = [
  "request-schema.ts",
  "decode-request.ts",
  "encode-response.ts",
  "encode-stream.ts",
  "passthrough/passthrough.ts",
  "passthrough/passthrough-stream.ts",
  "preset-fields.ts",
  "requirements.ts",
];

/** Dialect folders have the same files, so that knowing one is knowing all. */
export const sameDialectFiles: Rule = {
  name: "dialect folders look alike",
  fix: `Each has ${upstreamFiles.join(", ")}; one for clients has ${clientFiles.join(", ")} too.`,
  check({ paths }): Finding[] {
    const folders = [...paths].filter((path) =>
      /^src\/inference\/dialects\/(?!shared$|__snapshots__$)[^/.]+$/.test(path),
    );
    return folders.flatMap((folder) => {
      const facesClients = clientFiles.some((name) => paths.has(`${folder}/${name}`));
      return [...upstreamFiles, ...(facesClients ? clientFiles : [])]
        .filter((name) => !paths.has(`${folder}/${name}`))
        .map((name) => ({ path: folder, problem: `has no ${name}` }));
    });
  },
};
