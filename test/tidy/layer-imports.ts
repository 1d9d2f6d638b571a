import type { Finding, Rule } from "./rule.ts";
import { isProgram } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/**
 * Which room may know which, beside itself: the arrows of ARCHITECTURE.md. A name with
 * `/*` means a room with everything in it.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  main: [
    "app",
    "cli",
    "endpoints",
    "http",
    "documents",
    "inference/*",
    "identity",
    "billing",
    "insights",
    "platform/*",
  ],
  cli: [
    "app",
    "documentation",
    "http",
    "access",
    "inference/catalog",
    "inference/providers",
    "identity",
    "billing",
    "insights",
    "platform/*",
  ],
  documentation: [
    "http",
    "access",
    "mcp",
    "pages",
    "identity",
    "inference/sandbox",
    "inference/catalog",
    "inference/providers",
    "platform/*",
  ],
  app: [
    "endpoints",
    "documentation",
    "http",
    "access",
    "consent",
    "mcp",
    "documents",
    "files",
    "batches",
    "inference/*",
    "identity",
    "billing",
    "byok",
    "operator",
    "insights",
    "platform/*",
  ],
  endpoints: [
    "http",
    "access",
    "pages",
    "consent",
    "mcp",
    "documents",
    "files",
    "batches",
    "inference/*",
    "identity",
    "billing",
    "byok",
    "operator",
    "insights",
    "platform/*",
  ],
  consent: ["access", "identity", "billing", "platform/*"],
  mcp: ["http", "access", "inference/catalog", "identity", "billing", "insights", "platform/*"],
  pages: ["platform/kernel"],
  documents: ["inference/pipeline", "inference/catalog", "inference/upstream", "platform/*"],
  files: ["platform/*"],
  batches: ["files", "inference/dialects", "inference/pipeline", "identity", "platform/*"],
  http: ["platform/*"],
  access: ["http", "identity", "platform/*"],
  billing: ["access", "identity", "platform/*"],
  byok: ["billing", "identity", "platform/*"],
  operator: ["inference/catalog", "platform/*"],
  identity: ["platform/*"],
  "inference/pipeline": [
    "inference/routing",
    "inference/catalog",
    "inference/providers",
    "inference/dialects",
    "inference/canonical",
    "inference/upstream",
    "access",
    "identity",
    "billing",
    "byok",
    "insights",
    "platform/*",
  ],
  "inference/surfaces": [
    "inference/pipeline",
    "inference/routing",
    "inference/catalog",
    "inference/providers",
    "inference/dialects",
    "inference/canonical",
    "identity",
    "platform/kernel",
    "platform/spool",
  ],
  "inference/routing": [
    "inference/catalog",
    "inference/canonical",
    "billing",
    "byok",
    "platform/kernel",
  ],
  "inference/catalog": ["inference/providers", "inference/canonical", "billing", "platform/kernel"],
  "inference/providers": ["inference/dialects", "inference/canonical", "platform/kernel"],
  "inference/dialects": ["inference/canonical", "platform/kernel"],
  "inference/canonical": ["platform/kernel"],
  "inference/upstream": ["platform/kernel", "platform/spool"],
  "inference/sandbox": ["inference/dialects", "inference/canonical", "platform/kernel"],
  "inference/responses": ["inference/canonical", "inference/dialects", "identity", "platform/*"],
  insights: ["platform/*"],
  "platform/config": ["platform/kernel", "platform/telemetry"],
  "platform/storage": ["platform/kernel"],
  "platform/shared-state": ["platform/kernel"],
  "platform/rate-windows": ["platform/kernel"],
  "platform/vault": ["platform/config", "platform/kernel"],
  "platform/notify": ["platform/kernel"],
  "platform/spool": ["platform/kernel"],
  "platform/telemetry": ["platform/kernel"],
  "platform/kernel": [],
};

/** Packages that pure rooms may use; a room that is not named here may use every dependency. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "inference/canonical": [],
  "inference/dialects": ["typebox/schema", "zod"],
  "inference/providers": [],
};

/** Facts about this program that are read as data. */
const dataFiles = /(?:^package|\.)\.?json$/;

/** The room that a file of the program stands in. */
export function roomOf(path: string): string {
  const [, room = "", inner = "", ...rest] = path.split("/");
  if (inner === "") return "main";
  const divided = room === "inference" || room === "platform";
  return divided && rest.length > 0 ? `${room}/${inner}` : room;
}

const covers = (arrow: string, room: string): boolean =>
  arrow.endsWith("/*")
    ? room === arrow.slice(0, -2) || room.startsWith(arrow.slice(0, -1))
    : arrow === room;

function problemOf(
  from: string,
  { target, specifier }: { target: string | undefined; specifier: string },
): string | undefined {
  if (target === undefined) {
    const allowed = packages[from];
    return allowed === undefined || allowed.includes(specifier)
      ? undefined
      : `${from} may not use the package ${specifier}`;
  }
  if (dataFiles.test(target)) return undefined;
  if (!target.startsWith("src/")) return `the program may not know ${target}`;
  const to = roomOf(target);
  const known = arrows[from];
  if (known === undefined)
    return `the room ${from} is not in the table of test/tidy/layer-imports.ts`;
  return from === to || known.some((arrow) => covers(arrow, to))
    ? undefined
    : `${from} may not know ${to} (imports ${target})`;
}

/** Imports follow the arrows of the house. */
export const layerImports: Rule = {
  name: "layer imports",
  fix: "Move the code to the room that owns it, or hand the value down as a dependency.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path))
      .flatMap((file) =>
        file.imports.flatMap((each): Finding[] => {
          const problem = problemOf(roomOf(file.path), each);
          return problem === undefined
            ? []
            : [{ path: file.path, line: lineOf(file.syntax, each.node), problem }];
        }),
      ),
};
