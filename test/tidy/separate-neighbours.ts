import { isProgram, type Finding, type Rule } from "./rule.ts";
import { lineOf } from "./syntax-nodes.ts";

/** The folder of a dialect, such as `openai-chat`; undefined for what all of them share. */
const dialectOf = (path: string): string | undefined =>
  /^src\/inference\/dialects\/(?!shared\/)([^/]+)\//.exec(path)?.[1];
const isProvider = (path: string): boolean =>
  /^src\/inference\/providers\/(?!index\.ts|provider-definition\.ts|openai-models\.ts)/.test(path);

/** Dialects and providers know nothing of their neighbours. */
export const separateNeighbours: Rule = {
  name: "dialects and providers stand alone",
  fix: "Move what two of them share to a file beside them: a named option of the dialect, or canonical.",
  check: ({ files }) =>
    files
      .filter(({ path }) => isProgram(path))
      .flatMap((file) =>
        file.imports.flatMap(({ target = "", node }): Finding[] => {
          const from = dialectOf(file.path);
          const to = dialectOf(target);
          const dialects = from !== undefined && to !== undefined && from !== to;
          const vendors = isProvider(file.path) && isProvider(target);
          return dialects || vendors
            ? [
                {
                  path: file.path,
                  line: lineOf(file.syntax, node),
                  problem: `imports its neighbour ${target}`,
                },
              ]
            : [];
        }),
      ),
};
