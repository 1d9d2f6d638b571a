import type { Finding, Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";

const authorship = "speaks of how it was written";

/** What a file may not say, with the reason. Character classes keep the patterns from finding themselves. */
const unwanted: readonly { pattern: RegExp; problem: string }[] = [
  {
    pattern: /(?<![\w.$])[/](?:home|root|Users|work|mnt|workspace)[/]\w/,
    problem: "names a path of somebody's machine",
  },
  { pattern: /\bco-authored[-]by\b/i, problem: "names its authors; the history does that" },
  {
    pattern:
      /\b(?:written|generated|made|reviewed|decided) by (?:an? |the )?(?:AI|agent|session)s?\b/i,
    problem: authorship,
  },
  {
    pattern:
      /\b(?:this|our|the) (?:agent|assistant|session) (?:wrote|made|did|decided|was asked)\b/i,
    problem: authorship,
  },
  { pattern: /\bas an? (?:AI|language model)\b/i, problem: authorship },
];

function* textLines({
  files,
  documents,
}: SourceTree): Generator<{ path: string; line: number; text: string }> {
  const texts: [string, readonly string[]][] = [
    ...files.map(({ path, lines }): [string, readonly string[]] => [path, lines]),
    ...[...documents].map(([path, text]): [string, readonly string[]] => [path, text.split("\n")]),
  ];
  for (const [path, lines] of texts) {
    for (const [index, text] of lines.entries()) yield { path, line: index + 1, text };
  }
}

/** The repository speaks of the project only. */
export const wording: Rule = {
  name: "wording",
  fix: "Say what is true of the project on any machine, for any reader.",
  check: (tree) =>
    [...textLines(tree)].flatMap(({ path, line, text }) =>
      unwanted
        .filter(({ pattern }) => pattern.test(text))
        .map(({ problem }): Finding => ({ path, line, problem })),
    ),
};
