import { basename } from "node:path";
import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";

/**
 * A path as documents write it: between backticks or as the target of a link. Addresses of the site
 * are checked by its own test.
 */
const mentioned =
  /`((?:src|test|bench|scripts|docs|examples|deploy)\/[\w./*-]+)`|\]\((?!https?:|#|mailto:|\/)([^)#\s]+)/g;

/** What programs write at run time. */
const written = /^bench\/results\//;

/** Whether a path of the tree is meant; a star stands for any name. */
function exists(paths: ReadonlySet<string>, path: string): boolean {
  if (written.test(path)) return true;
  if (!path.includes("*")) return paths.has(path.replace(/\/$/, ""));
  const pattern = new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\*+/g, "[^ ]*")}$`);
  return [...paths].some((known) => pattern.test(known));
}

function findingsInDocuments({ documents, paths }: SourceTree): Finding[] {
  return [...documents].flatMap(([document, text]) =>
    text.split("\n").flatMap((line, index) =>
      [...line.matchAll(mentioned)].flatMap(([, plain, link = ""]): Finding[] => {
        const path = plain ?? new URL(link, `file:///${document}`).pathname.slice(1);
        return exists(paths, path)
          ? []
          : [{ path: document, line: index + 1, problem: `names ${path}, which is not there` }];
      }),
    ),
  );
}

/** A document as comments name it: without its folder. */
const documentName = /\b[\w-]+\.md\b/g;

/** Documents that a format of the field has, and not this repository. */
const ofFormats = ["SKILL.md"];

function findingsInComments({ files, paths }: SourceTree): Finding[] {
  const known = new Set([...[...paths].map((path) => basename(path)), ...ofFormats]);
  return files
    .filter(({ path }) => !path.startsWith("test/tidy/"))
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        [...line.matchAll(documentName)]
          .filter(([name]) => !known.has(name))
          .map(
            ([name]): Finding => ({
              path,
              line: index + 1,
              problem: `names ${name}, which is not there`,
            }),
          ),
      ),
    );
}

/** Documents name files that are there, and comments documents that are. */
export const documentPaths: Rule = {
  name: "paths in documents",
  fix: "Name the file as it is called now; what is not in the repository cannot be looked up.",
  check: (tree) => [...findingsInDocuments(tree), ...findingsInComments(tree)],
};
