import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { isNightly } from "../../support/nightly.ts";
import { endProcesses, temporaryDirectory } from "../../support/process.ts";
import { pythonPathOf, testClientsFolder } from "./support/test-clients-folder.ts";

const generators = join(testClientsFolder, "generators", "node_modules");
const pythonGenerator = join(testClientsFolder, "python-generator");
const root = join(import.meta.dir, "..", "..", "..");
const missing = (path: string): string =>
  existsSync(path) ? "" : " (missing: what scripts/install-test-clients.mjs installs)";

interface ApiDocument {
  paths: Record<string, unknown>;
  components: Record<string, Record<string, unknown>>;
}

let gateway: TestGateway;
let document = "";
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
  document = await (await gateway.get("/openapi.json")).text();
});
afterAll(async () => {
  await gateway.stop();
  await endProcesses();
});

/** The paths that the programs ask. */
const askedPaths = ["/chat/completions", "/keys", "/keys/{hash}", "/credits"];
/** Of how many further paths one is in the document of the slow generator by day. */
const pathsApart = 6;

/** Returns the document of the gateway: nightly all of it, by day some paths and their components. */
function documentForPython(): string {
  if (isNightly) return document;
  const { paths, components, ...rest } = JSON.parse(document) as ApiDocument;
  const entries = Object.entries(paths).filter(
    ([path], index) => askedPaths.includes(path) || index % pathsApart === 0,
  );
  const kept: ApiDocument["components"] = {};
  const keepFrom = (part: unknown): void => {
    for (const [, kind = "", name = ""] of JSON.stringify(part).matchAll(
      /"#\/components\/(\w+)\/([^"/]+)"/g,
    )) {
      if (kept[kind]?.[name] !== undefined) continue;
      const component = components[kind]?.[name];
      kept[kind] = { ...kept[kind], [name]: component };
      keepFrom(component);
    }
  };
  keepFrom(entries);
  const { securitySchemes = {} } = components;
  return JSON.stringify({
    ...rest,
    paths: Object.fromEntries(entries),
    components: { ...kept, securitySchemes },
  });
}

/** Runs a program in a folder and gives what it prints; its exit code has to be 0. */
async function outputOf(
  command: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${out}${err}`);
  return out + err;
}

const expected = {
  answer: expect.stringContaining("Hello"),
  text: expect.stringContaining("Hello"),
  limit: 5,
  names: expect.arrayContaining(["typed"]),
  deleted: true,
  balance: expect.any(Number),
  refused: "bad_request",
};

describe.skipIf(missing(generators) !== "")(
  `openapi-typescript and openapi-fetch${missing(generators)}`,
  () => {
    test("generate a client that type-checks, chats, streams, creates keys and reads credits", async () => {
      const folder = temporaryDirectory();
      writeFileSync(join(folder, "openapi.json"), document);
      copyFileSync(
        join(import.meta.dir, "generated", "typed-client.ts.txt"),
        join(folder, "client.ts"),
      );
      symlinkSync(generators, join(folder, "node_modules"));
      const bin = (name: string): string => join(generators, ".bin", name);
      await outputOf([bin("openapi-typescript"), "openapi.json", "-o", "api-types.d.ts"], folder);
      const options = ["--strict", "--noEmit", "--skipLibCheck", "--target", "esnext"];
      const modules = ["--module", "preserve", "--types", "bun"];
      const types = ["--typeRoots", join(root, "node_modules", "@types")];
      const compiler = join(root, "node_modules", ".bin", "tsc");
      await outputOf([compiler, ...options, ...modules, ...types, "client.ts"], folder);
      const parameters = [gateway.baseUrl, testLlmKey, testManagementKey];
      const output = await outputOf([process.execPath, "client.ts", ...parameters], folder);
      expect(JSON.parse(output)).toEqual(expected);
    }, 900_000);
  },
);

describe.skipIf(missing(pythonGenerator) !== "")(
  `openapi-python-client${missing(pythonGenerator)}`,
  () => {
    test("generates a client that chats, streams, creates keys and reads credits", async () => {
      const folder = temporaryDirectory();
      writeFileSync(join(folder, "openapi.json"), documentForPython());
      writeFileSync(join(folder, "config.yml"), "post_hooks: []\n");
      copyFileSync(
        join(import.meta.dir, "generated", "typed_client.py"),
        join(folder, "client.py"),
      );
      const python = { PYTHONPATH: pythonPathOf("python-generator"), PYTHONDONTWRITEBYTECODE: "1" };
      const generating = ["--path", "openapi.json", "--config", "config.yml", "--meta", "none"];
      const said = await outputOf(
        [
          "python3",
          "-m",
          "openapi_python_client",
          "generate",
          ...generating,
          "--output-path",
          "switchyard_client",
        ],
        folder,
        python,
      );
      // Files of other types than JSON and text have no model; no operation and no schema is left out.
      expect(said).not.toMatch(/Endpoint will not be generated|Unable to (?:parse|process) schema/);
      const parameters = [gateway.baseUrl, testLlmKey, testManagementKey];
      const output = await outputOf(["python3", "client.py", ...parameters], folder, python);
      expect(JSON.parse(output)).toEqual(expected);
    }, 900_000);
  },
);
