import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Node, SourceFile as Syntax, SyntaxKind } from "typescript/unstable/ast";
import { API, type APIOptions } from "typescript/unstable/async";
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { importsOf, type Import } from "./imports-of.ts";
import { nodesByKind } from "./syntax-nodes.ts";

/** One TypeScript file of the project, parsed. */
export interface SourceFile {
  /** From the root of the project, with slashes. */
  path: string;
  lines: readonly string[];
  syntax: Syntax;
  nodes: ReadonlyMap<SyntaxKind, readonly Node[]>;
  imports: readonly Import[];
}

/** Everything that the rules look at. */
export interface SourceTree {
  /** TypeScript files in the order of their paths. */
  files: readonly SourceFile[];
  /** Markdown, by path. */
  documents: ReadonlyMap<string, string>;
  /** Paths of every file and folder that is looked at, whatever its kind. */
  paths: ReadonlySet<string>;
}

const folders = ["src", "test", "bench", "scripts", "docs", "examples", "deploy"];
const skipped = new Set(["node_modules", "results", "data"]);
const root = join(import.meta.dir, "..", "..");

/** Reads and parses the project's own tree. */
export async function readSourceTree(): Promise<SourceTree> {
  const paths = new Set<string>();
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.isFile() || folders.includes(entry.name)) paths.add(entry.name);
    if (folders.includes(entry.name)) collect(entry.name, paths);
  }
  const texts = new Map(
    [...paths].filter(isRead).map((path) => [path, readFileSync(join(root, path), "utf8")]),
  );
  return buildTree({
    texts,
    paths,
    api: { cwd: root },
    configuration: join(import.meta.dir, "tsconfig.json"),
    base: root,
  });
}

/** A tree of the given files only, for tests of the rules. */
export async function sourceTreeOf(files: Readonly<Record<string, string>>): Promise<SourceTree> {
  const base = "/tree";
  const settings = JSON.stringify({
    compilerOptions: { noLib: true, noResolve: true, types: [], target: "ESNext" },
    include: [base],
  });
  const virtual = Object.entries(files).map(([path, text]) => [`${base}/${path}`, text]);
  const fs = createVirtualFileSystem({
    ...Object.fromEntries(virtual),
    [`${base}/tsconfig.json`]: settings,
  });
  const texts = new Map(Object.entries(files));
  const paths = new Set([...texts.keys()].flatMap(withFolders));
  return buildTree({
    texts,
    paths,
    api: { cwd: base, fs },
    configuration: `${base}/tsconfig.json`,
    base,
  });
}

/** A path and every folder above it. */
const withFolders = (path: string): string[] =>
  path.split("/").map((_, index, parts) => parts.slice(0, index + 1).join("/"));

function collect(folder: string, paths: Set<string>): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    if (skipped.has(entry.name)) continue;
    const path = `${folder}/${entry.name}`;
    paths.add(path);
    if (entry.isDirectory()) collect(path, paths);
  }
}

const isRead = (path: string): boolean => /\.(ts|mjs|md)$/.test(path);

interface TreeParts {
  texts: ReadonlyMap<string, string>;
  paths: ReadonlySet<string>;
  api: APIOptions;
  configuration: string;
  /** The folder that paths start from. */
  base: string;
}

async function buildTree({
  texts,
  paths,
  api,
  configuration,
  base,
}: TreeParts): Promise<SourceTree> {
  const sources = [...texts]
    .filter(([path]) => path.endsWith(".ts") && !path.endsWith(".d.ts"))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const compiler = new API(api);
  try {
    const snapshot = await compiler.updateSnapshot({ openProjects: [configuration] });
    const program = snapshot.getProjects()[0]?.program;
    const files = await Promise.all(
      sources.map(async ([path, text]): Promise<SourceFile> => {
        const syntax = await program?.getSourceFile(`${base}/${path}`);
        if (syntax === undefined) throw new Error(`${path} is not in ${configuration}`);
        const nodes = nodesByKind(syntax);
        return { path, lines: text.split("\n"), syntax, nodes, imports: importsOf(path, nodes) };
      }),
    );
    const documents = new Map([...texts].filter(([path]) => path.endsWith(".md")));
    return { files, documents, paths };
  } finally {
    await compiler.close();
  }
}
