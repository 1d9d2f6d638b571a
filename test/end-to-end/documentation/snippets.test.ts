import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { programPath } from "../../support/program.ts";
import {
  endProcesses,
  type GatewayProcess,
  startProcess,
  temporaryDirectory,
} from "../../support/process.ts";
import { at } from "../api/at.ts";
import { pythonPathOf, testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { runCommand } from "../command/run-command.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";

const root = join(import.meta.dir, "..", "..", "..");

/** A block of code of a page. */
interface Snippet {
  page: string;
  line: number;
  language: string;
  text: string;
  /** Why the tests do not run it. */
  notRun: string | undefined;
}

/** Every block that names its language; what programs print names none. */
function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = text.matchAll(
    /(?:^<!-- not run: (.+) -->\n)?^```([a-z]+(?: [a-z]+)?)\n([\s\S]*?)\n```$/gm,
  );
  return [...blocks].map(([, notRun, language = "", inner = ""], index) => ({
    page,
    line: text.slice(0, [...text.matchAll(/^```[a-z]+.*$/gm)][index]?.index).split("\n").length,
    language,
    text: inner,
    notRun,
  }));
}

const pages = [
  "README.md",
  ...["start", "guides", "operate"].flatMap((folder) =>
    readdirSync(join(root, "docs", folder)).map((name) => `docs/${folder}/${name}`),
  ),
];
const snippets = pages.flatMap(snippetsOf);

const python = (name: string): string => join(testClientsFolder, name);
const hasPython = ["python", "python-agents", "python-google"].every((name) =>
  existsSync(python(name)),
);

let gateway: GatewayProcess;
let generationId = "";
beforeAll(async () => {
  gateway = await startProcess({ environment: bootstrapVariables });
  const asked = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/chat:free",
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  generationId = String(at(await asked.json(), "id"));
});
afterAll(endProcesses);

/** The text as a reader would fill it in: the gateway's address, and values for what is made up. */
const filled = ({ text }: Snippet): string =>
  text
    .replaceAll("http://127.0.0.1:8787", gateway.url)
    .replaceAll("GENERATION_ID", generationId)
    .replaceAll(/^export \w+=\S*\.\.\..*$/gm, "");

/** A folder as the snippets expect it: a project with the packages, and the files that they read. */
function readersFolder(): string {
  const folder = temporaryDirectory();
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  copyFileSync(join(root, "examples", "invoice.png"), join(folder, "scan.pdf"));
  for (const [name, peers] of [
    ["config.json", "bifrost.json"],
    ["ai-gateway-config.yaml", "helicone.yaml"],
    ["tensorzero.toml", "tensorzero.toml"],
  ] as const)
    copyFileSync(join(root, "test", "support", "peer-configurations", peers), join(folder, name));
  writeFileSync(
    join(folder, "config.yaml"),
    "model_list:\n  - { model_name: gpt-4o, litellm_params: { model: openai/gpt-4o } }\n",
  );
  return folder;
}

const preamble = `set -eo pipefail
curl() { command curl --silent --show-error --fail-with-body "$@"; }
npx() { [ "$1" = switchyard ] || exit 90; shift; ${process.execPath} ${programPath("switchyard")} "$@"; }
`;

async function run(command: readonly string[], folder: string, pythonPath = ""): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      SWITCHYARD_URL: gateway.url,
      SWITCHYARD_KEY: testLlmKey,
      SWITCHYARD_MANAGEMENT_KEY: testManagementKey,
      MANAGEMENT_KEY: testManagementKey,
      SWITCHYARD_DATA_DIR: gateway.dataDirectory,
      PYTHONPATH: pythonPath,
      PYTHONDONTWRITEBYTECODE: "1",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`it ended with ${code}:\n${out}\n${err}`);
  return out;
}

/** The packages that a program in Python needs. */
const packagesOf = ({ text }: Snippet): string =>
  /^(?:from|import) (?:pydantic_ai|agents)\b/m.test(text)
    ? "python-agents"
    : text.includes("from google import")
      ? "python-google"
      : "python";

/** Runs programs one after another, since loading what they import takes most of their time. */
const oneByOne = `import json, sys, traceback
for path in sys.argv[1:]:
    failure = ""
    try:
        exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
    except BaseException:
        failure = traceback.format_exc()
    print("\\n" + json.dumps({"path": path, "failure": failure}), flush=True)
`;

/** What each program of some packages raised; empty where it came to its end. */
const pythonRuns = new Map<string, Promise<Map<Snippet, string>>>();
async function runPython(group: string): Promise<Map<Snippet, string>> {
  const folder = readersFolder();
  const own = inPython.filter((snippet) => packagesOf(snippet) === group);
  const names = own.map((snippet, index) => {
    writeFileSync(join(folder, `snippet-${index}.py`), filled(snippet));
    return `snippet-${index}.py`;
  });
  writeFileSync(join(folder, "one_by_one.py"), oneByOne);
  const printed = await run(["python3", "one_by_one.py", ...names], folder, pythonPathOf(group));
  const ends = printed
    .split("\n")
    .filter((line) => line.startsWith('{"path"'))
    .map((line) => JSON.parse(line) as { path: string; failure: string });
  return new Map(
    own.map((snippet, index) => [
      snippet,
      ends.find(({ path }) => path === names[index])?.failure ?? `it did not end:\n${printed}`,
    ]),
  );
}

const runners: Readonly<Record<string, (snippet: Snippet) => Promise<void>>> = {
  async sh(snippet) {
    await run(["bash", "-c", preamble + filled(snippet)], readersFolder());
  },
  async ts(snippet) {
    const folder = readersFolder();
    writeFileSync(join(folder, "snippet.ts"), filled(snippet));
    await run([process.execPath, "snippet.ts"], folder);
  },
  async python(snippet) {
    const group = packagesOf(snippet);
    const ran = pythonRuns.get(group) ?? runPython(group);
    pythonRuns.set(group, ran);
    expect((await ran).get(snippet)).toBe("");
  },
  async yaml({ text }) {
    expect(await runCommand(["check"], { yaml: text })).toMatchObject({
      exitCode: 0,
      stdout: "The configuration can be used.\n",
    });
  },
  /** The settings of another program, which only have to be what its language takes. */
  "yaml aider": async ({ text }) => expect(Bun.YAML.parse(text)).toBeObject(),
  toml: async ({ text }) => expect(Bun.TOML.parse(text)).toBeObject(),
  /** Part of a request, which the gateway has to understand, or the settings of another program. */
  async json({ page, text }) {
    const value: unknown = JSON.parse(text);
    if (page !== "docs/guides/routing.md") return;
    const answer = await fetch(`${gateway.url}/v1/routing/explain`, {
      method: "POST",
      headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sandbox/chat:free",
        messages: [{ role: "user", content: "Hi" }],
        ...(value as object),
      }),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)]);
  },
};

const titleOf = ({ page, line, language }: Snippet): string => `${page}:${line} (${language})`;
const runnable = snippets.filter(({ notRun }) => notRun === undefined);
const inPython = runnable.filter(({ language }) => language === "python");
const others = runnable.filter(({ language }) => language !== "python");

describe("code snippets of the README, start, guides and operate pages", () => {
  test("are in languages that tests run, or state why they are not run", () => {
    expect(snippets.length).toBeGreaterThan(40);
    const unknown = runnable.filter(({ language }) => runners[language] === undefined);
    expect(unknown.map(titleOf)).toEqual([]);
  });

  test.each(others.map((snippet) => [titleOf(snippet), snippet] as const))(
    "%s",
    async (_, snippet) => {
      await runners[snippet.language]?.(snippet);
    },
    600_000,
  );
});

describe.skipIf(!hasPython)(
  `snippets in Python${hasPython ? "" : " (missing: what scripts/install-test-clients.mjs installs)"}`,
  () => {
    test.each(inPython.map((snippet) => [titleOf(snippet), snippet] as const))(
      "%s",
      async (_, snippet) => {
        await runners[snippet.language]?.(snippet);
      },
      600_000,
    );
  },
);
