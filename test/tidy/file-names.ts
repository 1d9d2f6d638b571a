import { basename } from "node:path";
import type { Finding, Rule } from "./rule.ts";

const dumpingGrounds = /^(utils?|helpers?|common|misc|types)(\.|$)/;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/;

function problemOf(path: string): string | undefined {
  const name = basename(path);
  if (dumpingGrounds.test(name)) return "has a name that says nothing of what is in it";
  return kebabCase.test(name) ? undefined : "is not named in kebab-case";
}

/** A file is named after what it exports; names that fit everything attract everything. */
export const fileNames: Rule = {
  name: "file names",
  fix: "Name the file after its main export.",
  check: ({ files }) =>
    files.flatMap(({ path }): Finding[] => {
      const problem = problemOf(path);
      return problem === undefined ? [] : [{ path, problem }];
    }),
};
