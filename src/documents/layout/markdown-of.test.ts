import { expect, test } from "bun:test";
import type { Fragment } from "./regions-of.ts";
import { markdownOf } from "./markdown-of.ts";

/**
 * A page drawn with characters: 6 wide and 12 high each; `^2` at a row's start doubles its size.
 */
function page(drawing: string): Fragment[] {
  return drawing.split("\n").flatMap((row, line) => {
    const factor = row.startsWith("^") ? Number(row[1]) : 1;
    const text = row.replace(/^\^\d/, "");
    return [...text.matchAll(/\S+/g)].map((word) => {
      const left = (word.index ?? 0) * 6;
      const top = line * 14;
      return {
        text: word[0],
        left,
        right: left + word[0].length * 6,
        top,
        bottom: top + 12 * factor,
        size: 12 * factor,
      };
    });
  });
}

test.each<[name: string, drawing: string, markdown: string]>([
  [
    "consecutive lines are one paragraph, and a gap ends it",
    "one two\nthree four\n\nfive",
    "one two three four\n\nfive",
  ],
  [
    "a hyphenated word is joined",
    "some divi-\nded word, well-\nKnown",
    "some divided word, well- Known",
  ],
  [
    "larger type becomes a heading, the largest type the top level",
    "^3Big\n\n\n\n^2Less\n\n\ntext that goes\non here",
    "# Big\n\n## Less\n\ntext that goes on here",
  ],
  [
    "bullets and numbers become lists",
    "• one\n  and more\n- two\n\n1. first\n2. second\n(a) third",
    "- one and more\n- two\n1. first\n2. second\n- a) third",
  ],
  [
    "aligned cells become a table",
    "Name      Count\nnuts      12\nbolts     7",
    "| Name | Count |\n| --- | --- |\n| nuts | 12 |\n| bolts | 7 |",
  ],
  [
    "a cell may be empty",
    "Name      Count     Sum\nnuts                5\nbolts     7         6",
    "| Name | Count | Sum |\n| --- | --- | --- |\n| nuts |  | 5 |\n| bolts | 7 | 6 |",
  ],
  [
    "text in columns is read column by column",
    "the left side has some        the right side has its\nwords of its own that         own words and they are\n" +
      "read on down here             read after the left ones",
    "the left side has some words of its own that read on down here\n\n" +
      "the right side has its own words and they are read after the left ones",
  ],
  [
    "Markdown and HTML syntax is escaped",
    "# 1 <script> a|b\n\n> quote",
    "\\# 1 \\<script> a|b\n\n\\> quote",
  ],
  ["an empty page gives an empty text", "", ""],
])("markdownOf: %s", (_, drawing, markdown) => {
  expect(markdownOf([page(drawing)])).toBe(markdown);
});

test("markdownOf uses the same heading sizes on every page of a document", () => {
  const pages = [page("^2Title\n\n\nbody text of it"), page("more of the text"), page("")];
  expect(markdownOf(pages)).toBe("# Title\n\nbody text of it\n\nmore of the text");
});
