import type { Finding, Rule } from "./rule.ts";
import { isProgram } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/**
 * Which room may know which, beside itself: the arrows of ARCHITECTURE.md. `inference` alone is the
 * spine (`src/inference/*.ts`); a name with `/*` means a room with everything in it.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  main: [
    "app",
    "cli",
    "endpoints",
    "http",
    "documents",
    "inference/*",
    "account",
    "insights",
    "platform/*",
  ],
  cli: ["app", "http", "inference/catalog", "account", "platform/*"],
  documentation: [
    "http",
    "mcp",
    "pages",
    "account",
    "inference/sandbox",
    "inference/catalog",
    "platform/*",
  ],
  app: [
    "endpoints",
    "documentation",
    "http",
    "consent",
    "mcp",
    "documents",
    "inference/*",
    "account",
    "insights",
    "platform/*",
  ],
  endpoints: [
    "http",
    "pages",
    "consent",
    "mcp",
    "documents",
    "inference/*",
    "account",
    "insights",
    "platform/*",
  ],
  consent: ["account", "platform/*"],
  mcp: ["http", "inference/catalog", "account", "platform/*"],
  pages: ["platform/lib"],
  documents: ["inference", "inference/catalog", "inference/upstream", "platform/*"],
  http: ["account", "platform/*"],
  inference: [
    "inference/interpret",
    "inference/routing",
    "inference/catalog",
    "inference/providers",
    "inference/dialects",
    "inference/canonical",
    "inference/upstream",
    "account",
    "insights",
    "platform/*",
  ],
  "inference/interpret": [
    "inference/catalog",
    "inference/providers",
    "inference/dialects",
    "inference/canonical",
    "inference/upstream",
    "insights",
    "platform/lib",
  ],
  "inference/surfaces": [
    "inference",
    "inference/interpret",
    "inference/routing",
    "inference/catalog",
    "inference/providers",
    "inference/dialects",
    "inference/canonical",
    "account",
    "platform/lib",
  ],
  "inference/routing": ["inference/catalog", "inference/canonical", "account", "platform/lib"],
  "inference/catalog": ["inference/providers", "inference/canonical", "account", "platform/lib"],
  "inference/providers": ["inference/dialects", "inference/canonical", "platform/lib"],
  "inference/dialects": ["inference/canonical", "platform/lib"],
  "inference/canonical": [],
  "inference/upstream": ["platform/lib"],
  "inference/sandbox": ["platform/lib"],
  "inference/stored-responses": [
    "inference/canonical",
    "inference/dialects",
    "account",
    "platform/*",
  ],
  account: ["platform/*"],
  insights: ["platform/*"],
  "platform/config": ["platform/lib", "platform/telemetry"],
  "platform/storage": ["platform/lib"],
  "platform/shared-state": ["platform/lib"],
  "platform/telemetry": ["platform/lib"],
  "platform/lib": [],
};

/** Packages that pure rooms may use; a room that is not named here may use every dependency. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "inference/canonical": [],
  "inference/dialects": ["zod"],
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
