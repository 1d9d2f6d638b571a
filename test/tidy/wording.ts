import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile, SourceTree } from "./source-tree.ts";

const authorship = "speaks of how it was written";

/**
 * What a file may not say, with the reason. Character classes keep the patterns from finding
 * themselves.
 */
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

/** Words that make a riddle of a sentence whose subject has a name, and what to write instead. */
const riddles: readonly { pattern: RegExp; instead: string }[] = [
  { pattern: /\b(?:whoever|somebody|nobody|anybody|everybody)\b/i, instead: "name the subject" },
  { pattern: /\bwhatever\b/i, instead: "name the thing, or write `any`" },
  { pattern: /\banew\b/i, instead: "again" },
  { pattern: /\b(?:tells? of|(?:is|are|was|were|be|been) told)\b/i, instead: "reports, is sent" },
  { pattern: /\bwhat of\b/i, instead: "the part of" },
  { pattern: /\b(?:stands for)\b/i, instead: "is, means" },
];

/** What readers read in a line: a comment of a program, or any line of the manual. */
function proseOf(path: string, text: string): string {
  if (path.endsWith(".md")) return path.startsWith("docs/decisions/") ? "" : text;
  return /^\s*(?:\/\/|\/?\*)/.test(text) ? text : (/\s\/\/ .*$/.exec(text)?.[0] ?? "");
}

/** Comments and documents are plain technical English, as Stripe's or hono's are. */
export const plainEnglish: Rule = {
  name: "plain English",
  fix: "Say what it is or does, verb first, with the field's own word.",
  check: (tree) =>
    [...textLines(tree)].flatMap(({ path, line, text }) =>
      riddles
        .filter(({ pattern }) => pattern.test(proseOf(path, text)))
        .map(
          ({ pattern, instead }): Finding => ({
            path,
            line,
            problem: `says "${pattern.exec(text)?.[0]}": ${instead}`,
          }),
        ),
    ),
};

/** The lines of a file that say a word, where the part of the line that counts is `readOf`. */
const findingsIn = (
  { path, lines }: SourceFile,
  words: readonly { pattern: RegExp; instead: string }[],
  readOf: (text: string) => readonly string[],
): Finding[] =>
  lines.flatMap((text, index) =>
    words
      .filter(({ pattern }) => readOf(text).some((read) => pattern.test(read)))
      .map(({ pattern, instead }) => ({
        path,
        line: index + 1,
        problem: `says "${pattern.exec(text)?.[0]}": ${instead}`,
      })),
  );

/** The texts between quotes in a line of a program, which callers, people and logs read. */
const quotedTexts = (text: string): string[] =>
  /^\s*(?:\/\/|\/?\*)/.test(text) ? [] : (text.match(/"[^"]*"|`[^`]*`/g) ?? []);

/** Messages, pages and log lines are plain, too; a text over several lines is read line by line. */
export const plainMessages: Rule = {
  name: "plain messages",
  fix: "Name the subject and the way out: the reader of a message is in a hurry.",
  check: (tree) =>
    tree.files
      .filter(({ path }) => isProgram(path) || path.startsWith("dashboard/src/"))
      .flatMap((file) =>
        findingsIn(file, riddles, quotedTexts).map((finding) => ({
          ...finding,
          problem: finding.problem.replace('":', '" in a message:'),
        })),
      ),
};

/** Former words for a concept, and the one that the project has for it now. */
const formerNames: readonly { pattern: RegExp; instead: string }[] = [
  { pattern: /quirk/i, instead: "deviation" },
  { pattern: /habits?(?![a-z])/i, instead: "deviation" },
  { pattern: /lifeline/i, instead: "abort scope" },
  { pattern: /\b(?:Request|Surface|Chat|chat)Asks\b|\bcall\.asks\b/, instead: "requirements" },
  { pattern: /\b(?:Shared)?Claims\b|\bthis\.claims\b/, instead: "leases, or reversals" },
  { pattern: /\b\w*[a-z]Spelling\b|[.]spelling\b/, instead: "field" },
  { pattern: /\b\w*Bearing\b|\bbearings\b/, instead: "fallback policy, hold outcome" },
  { pattern: /\bnew Turns\b/, instead: "keyed mutex" },
];

/** Each concept has one name in the program, that of the glossaries. */
export const oneName: Rule = {
  name: "one name",
  fix: "Use the word of the glossary in ARCHITECTURE.md or CONTRIBUTING.md.",
  check: (tree) =>
    tree.files
      .filter(({ path }) => isProgram(path))
      .flatMap((file) => findingsIn(file, formerNames, (text) => [text])),
};
