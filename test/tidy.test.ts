import { expect, test } from "bun:test";
import ratchet from "./tidy/ratchet.json";
import { violations, type Ratchet } from "./tidy/ratchet.ts";
import { rules } from "./tidy/rules.ts";
import { readSourceTree } from "./tidy/source-tree.ts";

const tree = await readSourceTree();

test.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_, rule) => {
  const problems = violations(rule, { tree, ratchet: ratchet as Ratchet });
  if (problems.length > 0) throw new Error(`\n${problems.join("\n")}`);
});

test("every allowance belongs to a rule, and large files have a reason", () => {
  const names = rules.map(({ name }) => name);
  expect(Object.keys(ratchet).filter((name) => !names.includes(name))).toEqual([]);
  const large = Object.entries((ratchet as Ratchet)["file size"] ?? {});
  expect(
    large
      .filter(([, allowance]) => typeof allowance === "number" || allowance.why === "")
      .map(([path]) => path),
  ).toEqual([]);
});
