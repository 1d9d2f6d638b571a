import { expect, test } from "bun:test";
import { violations, type Ratchet } from "./ratchet.ts";
import { rules } from "./rules.ts";
import { sourceTreeOf } from "./source-tree.ts";

const almostADialect = Object.fromEntries(
  [
    "index",
    "request-schema",
    "decode-request",
    "encode-request",
    "decode-response",
    "encode-response",
    "decode-stream",
    "encode-stream",
    "passthrough/passthrough",
    "passthrough/passthrough-stream",
    "preset-fields",
    "requirements",
    "answer-fields",
    "usage",
  ].map((name) => [`src/inference/dialects/acme/${name}.ts`, ""]),
);

const filesIn = (folder: string, count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${folder}/${index}.ts`, ""]));

/**
 * A tree that breaks a rule, and what the rule says of it; an empty list where nothing is wrong.
 */
const cases: [rule: string, files: Record<string, string>, expected: string[]][] = [
  [
    "layer imports",
    { "src/identity/a.ts": 'import { b } from "../http/b.ts";' },
    ["src/identity/a.ts:1 identity may not know http"],
  ],
  [
    "layer imports",
    { "src/identity/a.ts": 'import type { B } from "../http/b.ts";' },
    ["src/identity/a.ts:1 identity may not know http"],
  ],
  ["layer imports", { "src/access/a.ts": 'import { b } from "../identity/keys/b.ts";' }, []],
  [
    "layer imports",
    { "src/http/a.ts": 'import { b } from "../access/b.ts";' },
    ["src/http/a.ts:1 http may not know access"],
  ],
  [
    "no room cycles",
    {
      "src/billing/a.ts": 'import type { B } from "../identity/keys/b.ts";',
      "src/identity/keys/b.ts": 'import type { A } from "../../billing/a.ts";',
    },
    ["src/billing is in a circle: billing -> identity -> billing", "src/identity is in a circle"],
  ],
  [
    "ideas a file",
    { "src/billing/ledger/take-hold.ts": "export class RetryBudget {}" },
    ["src/billing/ledger/take-hold.ts:1 hides the class RetryBudget"],
  ],
  [
    "ideas a file",
    {
      "src/billing/ledger/retry-budget.ts": "export class RetryBudget {}\nclass SpentError {}",
      "src/billing/ledger/sse-decoder.ts": "export class SSEDecoder {}",
      "src/cli/a.ts": "class Other {}",
    },
    [],
  ],
  ["no room cycles", { "src/billing/a.ts": 'import type { B } from "../identity/keys/b.ts";' }, []],
  [
    "layer imports",
    { "src/inference/canonical/a.ts": 'import "zod";' },
    ["may not use the package zod"],
  ],
  [
    "layer imports",
    { "src/inference/dialects/x/a.ts": 'import "node:fs";' },
    ["may not use the package node:fs"],
  ],
  [
    "layer imports",
    { "src/inference/dialects/x/a.ts": 'import { b } from "../../routing/b.ts";' },
    ["may not know inference/routing"],
  ],
  [
    "layer imports",
    { "src/app/create-app.ts": 'import "../../test/support/gateway.ts";' },
    ["the program may not know test/support/gateway.ts"],
  ],
  [
    "layer imports",
    { "src/shop/a.ts": 'import "../http/b.ts";' },
    ["the room shop is not in the table"],
  ],
  ["layer imports", { "src/identity/a.test.ts": 'import "../http/b.ts";' }, []],
  [
    "dialects and providers stand alone",
    { "src/inference/dialects/x/a.ts": 'import "../y/b.ts";' },
    ["imports its neighbour"],
  ],
  [
    "dialects and providers stand alone",
    { "src/inference/dialects/x/a.ts": 'import "../dialect.ts"; import "./b.ts";' },
    [],
  ],
  [
    "dialects and providers stand alone",
    { "src/inference/providers/x.ts": 'import { y } from "./y.ts";' },
    ["imports its neighbour"],
  ],
  [
    "no import cycles",
    { "src/a.ts": 'import "./b.ts";', "src/b.ts": 'export { a } from "./a.ts";' },
    ["src/a.ts is in a circle: src/a.ts -> src/b.ts -> src/a.ts", "src/b.ts is in a circle"],
  ],
  [
    "no import cycles",
    {
      "src/a.ts": 'import "./b.ts";',
      "src/b.ts": 'import type { A } from "./a.ts";',
      "src/c.ts": 'import "./a.ts";',
    },
    ["src/a.ts is in a circle: src/a.ts -> src/b.ts -> src/a.ts", "src/b.ts is in a circle"],
  ],
  ["relative imports name their file", { "src/a.ts": 'import "./b";' }, ["src/a.ts:1 imports ./b"]],
  [
    "relative imports name their file",
    { "src/a.ts": 'import "zod"; await import("pg"); await import("./b.ts");' },
    [],
  ],
  ["no default exports", { "src/a.ts": "export default 1;" }, ["src/a.ts:1 has a default export"]],
  [
    "no default exports",
    { "src/a.ts": "export default function f(): void {}" },
    ["src/a.ts:1 has a default export"],
  ],
  [
    "banned calls",
    { "src/a.ts": "\nconst b = process.env.PORT;" },
    ["src/a.ts:2 touches process.env"],
  ],
  ["banned calls", { "src/a.ts": 'console.warn("b");' }, ["touches console.warn"]],
  [
    "banned calls",
    { "src/a.ts": "const b = Date.now() + performance.now();" },
    ["touches Date.now", "touches performance.now"],
  ],
  [
    "banned calls",
    { "src/inference/a.ts": 'await fetch("b");', "src/http/a.ts": 'fetch("b");' },
    ["src/inference/a.ts:1 touches fetch"],
  ],
  [
    "banned calls",
    { "src/main.ts": "process.env; console.log(1);", "src/a.test.ts": "Date.now();" },
    [],
  ],
  ["no any", { "test/a.ts": "const b: any[] = [];" }, ["test/a.ts:1 uses the type any"]],
  ["no any", { "src/a.ts": '/* any */ const any = "any"; b.any(any);' }, []],
  ["file names", { "src/utils.ts": "" }, ["src/utils.ts has a name that says nothing"]],
  ["file names", { "src/createApp.ts": "" }, ["is not named in kebab-case"]],
  ["dialect folders look alike", almostADialect, ["src/inference/dialects/acme has no errors.ts"]],
  [
    "dialect folders look alike",
    {
      "src/inference/dialects/acme/index.ts": "",
      "src/inference/dialects/acme/encode-request.ts": "",
      "src/inference/dialects/acme/decode-response.ts": "",
      "src/inference/dialects/acme/answer-fields.ts": "",
      "src/inference/dialects/acme/usage.ts": "",
      "src/inference/dialects/acme/errors.ts": "",
    },
    ["src/inference/dialects/acme has no decode-stream.ts"],
  ],
  [
    "dialect questions",
    { "src/inference/pipeline/a.ts": 'const is = dialect === "openai-chat";\n' },
    ["src/inference/pipeline/a.ts:1 asks which dialect it is"],
  ],
  [
    "dialect questions",
    { "src/inference/pipeline/a.ts": 'const request = { dialect: "openai-chat" };\n' },
    [],
  ],
  [
    "wire fields",
    {
      "src/inference/pipeline/a.ts":
        '// Not max_output_tokens.\nconst cap = body["max_output_tokens"];',
      "src/inference/routing/b.ts": "const { thinkingConfig } = body;",
    },
    ["src/inference/pipeline/a.ts:2 names max_output_tokens", "b.ts:1 names thinkingConfig"],
  ],
  [
    "wire fields",
    {
      "src/inference/dialects/x/a.ts": "const { max_output_tokens } = body;",
      "src/insights/a.ts": 'select("finish_reason");',
      "src/inference/pipeline/a.test.ts": "expect(body.tool_calls);",
    },
    [],
  ],
  [
    "orphan files",
    { "src/main.ts": 'import "./a.ts";', "src/a.ts": "", "src/b.ts": 'import "./a.ts";' },
    ["src/b.ts is used by nothing"],
  ],
  [
    "orphan files",
    { "src/main.ts": "", "src/a.ts": "", "src/a.test.ts": 'import "./a.ts";' },
    ["src/a.ts is used by tests only"],
  ],
  [
    "orphan files",
    { "src/main.ts": 'new Worker(new URL("./a.ts", import.meta.url));', "src/a.ts": "" },
    [],
  ],
  [
    "orphan files",
    {
      "test/a.test.ts": 'join(import.meta.dir, "b.ts");',
      "test/b.ts": "",
      "test/c.ts": "",
    },
    ["test/c.ts is used by nothing"],
  ],
  [
    "endpoint table",
    {
      "src/endpoints/index.ts": "export const endpoints = [a, a];",
      "src/endpoints/a.ts":
        'export const a = defineEndpoint<D>({ path: "/a" });\nexport const b = defineEndpoint<D>({ path: "/b" });',
    },
    ["b is not in the table", "a is listed twice"],
  ],
  [
    "endpoint table",
    {
      "src/endpoints/index.ts": "export const endpoints = [...parts];",
      "src/endpoints/noun/index.ts": "export const parts = [a]; export const more = [b];",
      "src/endpoints/noun/a.ts":
        'export const a = defineEndpoint({ path: "/a" });\nexport const b = defineEndpoint({ path: "/b" });',
    },
    ["b is not in the table"],
  ],
  [
    "tested endpoints",
    {
      "src/endpoints/a.ts":
        'export const a = defineEndpoint({ path: "/a/:id" });\nexport const b = defineEndpoint({ path: "/b/:id" });',
      "test/a.test.ts": 'get("/a/1");',
    },
    ["b (/b/:id) is called by no test"],
  ],
  ["line length", { "src/a.ts": `// ${"b".repeat(138)}` }, ["src/a.ts:1 has 141 columns"]],
  ["line length", { "src/a.ts": `// ${"b".repeat(137)}` }, []],
  [
    "file size",
    { "src/a.ts": "\n".repeat(501), "src/b.ts": "\n".repeat(500) },
    ["src/a.ts has 501 lines"],
  ],
  ["folder size", filesIn("src/a", 16), ["src/a has 16 files"]],
  [
    "folder size",
    { ...filesIn("src/a", 15), ...filesIn("src/a/b", 15), "src/a/c.test.ts": "" },
    [],
  ],
  [
    "function length",
    { "src/a.ts": `const b = () => {${"\n".repeat(70)}};` },
    ["src/a.ts:1 b has 71 lines"],
  ],
  ["function length", { "src/a.test.ts": `describe("b", () => {${"\n".repeat(70)}});` }, []],
  [
    "doc comments",
    {
      "src/a.ts":
        "/** Is said. */\nexport const b = 1;\nexport const c = 2;\n\nexport const d = 3;",
    },
    ["src/a.ts:5 d has no doc comment"],
  ],
  [
    "plain English",
    { "src/a.ts": "// Who" + "ever asks is served.\nexport const a = 1; // The caller asks." },
    ['src/a.ts:1 says "Who' + 'ever": name the subject'],
  ],
  [
    "plain messages",
    { "src/a.ts": `export const a = "No${"body"} signs up here."; // A comment.` },
    ['src/a.ts:1 says "No' + 'body" in a message: name the subject'],
  ],
  [
    "one name",
    { "src/a.ts": `export const ${"qui"}rks = 1;`, "src/b.ts": "export const deviations = 1;" },
    ['src/a.ts:1 says "qui' + 'rk": deviation'],
  ],
  [
    "heads of decisions",
    {
      "docs/decisions/0001-a.md": "# 0001: A\n\nDate: 2026-11-22. Status: accepted.\n",
      "docs/decisions/0002-b.md": "# 0002 B\n\n2026-11-22\n",
    },
    [
      "docs/decisions/0002-b.md:1 has the head # 0002 B",
      "docs/decisions/0002-b.md:3 says 2026-11-22",
    ],
  ],
  [
    "wording",
    { "src/a.ts": `// See ${["", "home", "me"].join("/")}.` },
    ["names a path of somebody's machine"],
  ],
  [
    "wording",
    { "README.md": `Written by ${"an"} agent.` },
    ["README.md:1 speaks of how it was written"],
  ],
  [
    "paths in documents",
    { "src/a.ts": "// See b.md and README.md.", "README.md": "" },
    ["src/a.ts:1 names b.md"],
  ],
  [
    "paths in documents",
    { "README.md": "See `src/a.ts`, [b](docs/b.md) and `src/*.ts`.", "src/a.ts": "" },
    ["names docs/b.md"],
  ],
];

for (const [name, files, expected] of cases) {
  test(`${name}: ${expected[0] ?? `nothing against ${JSON.stringify(files).slice(0, 80)}`}`, async () => {
    const rule = rules.find((each) => each.name === name);
    if (rule === undefined) throw new Error(`there is no rule ${name}`);
    const lines = violations(rule, { tree: await sourceTreeOf(files), ratchet: {} });
    expect(lines.filter((line) => !line.startsWith("Fix: "))).toEqual(
      expected.map((text) => expect.stringContaining(text)),
    );
  });
}

test("every rule has a case that it refuses", () => {
  const refusing = new Set(
    cases.filter(([, , expected]) => expected.length > 0).map(([name]) => name),
  );
  expect(rules.map(({ name }) => name).filter((name) => !refusing.has(name))).toEqual([]);
});

const long = { "src/a.ts": `// ${"b".repeat(138)}\n// ${"c".repeat(138)}` };
const allowing = (count: number): Ratchet => ({ "line length": { "src/a.ts": count } });

test.each([
  [
    1,
    [
      "src/a.ts:1 has 141 columns (1 allowed so far, now 2)",
      "src/a.ts:2 has 141 columns (1 allowed so far, now 2)",
    ],
  ],
  [2, []],
  [3, ["src/a.ts is better than its allowance of 3: run bun test/tidy/tighten-ratchet.ts"]],
])("with two long lines an allowance of %d means %j", async (count, expected) => {
  const [rule] = rules.filter(({ name }) => name === "line length");
  const lines =
    rule === undefined
      ? []
      : violations(rule, { tree: await sourceTreeOf(long), ratchet: allowing(count) });
  expect(lines.filter((line) => !line.startsWith("Fix: "))).toEqual(expected);
});
