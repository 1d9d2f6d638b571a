import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configuredProviderSchema } from "../../../inference/catalog/configured/configured-provider.ts";
import { loadConfiguration } from "../../../platform/config/load-configuration.ts";
import { Terminal } from "../../terminal.ts";
import { importFrom } from "../import-command.ts";
import type { ImportFinding } from "../source-document.ts";

const folder = join(import.meta.dirname, "../../../../test/support/litellm-configurations");
const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

/** What `switchyard import litellm --dry-run --json` prints. */
async function importedFrom(name: string) {
  let shown = "";
  const terminal = new Terminal({
    json: true,
    hasColours: false,
    out: (text) => {
      shown += text;
    },
    err: () => undefined,
  });
  const context = {
    terminal,
    environment: {},
    workingDirectory: folder,
    url: undefined,
    key: undefined,
  };
  await importFrom(context, "litellm", [name], { dryRun: true });
  return JSON.parse(shown) as {
    configuration: { text: string };
    variables: { names: string[] } | null;
    records: { presets: unknown[]; budgets: unknown[] };
    findings: ImportFinding[];
  };
}

test("there are configurations of twelve people and more", () => {
  expect(names.length).toBeGreaterThanOrEqual(12);
});

test.each(names)(
  "%s is imported and reported as recorded, and the gateway loads it",
  async (name) => {
    const { configuration, records, variables, findings } = await importedFrom(name);
    const report = findings.map(
      ({ file, line, outcome, path, text }) =>
        `${file.split("/").at(-1)}:${line} ${outcome} ${path}: ${text.replaceAll(folder, ".")}`,
    );
    expect([configuration.text, records, report].map(asText).join("\n")).toMatchSnapshot();

    const file = join(mkdtempSync(join(tmpdir(), "litellm-")), "switchyard.yaml");
    writeFileSync(file, configuration.text);
    const secrets = (variables?.names ?? []).map((variable) => [variable, "a-secret"] as const);
    const environment = { ...Object.fromEntries(secrets), SWITCHYARD_CONFIG: file };
    await loadConfiguration({
      environment,
      workingDirectory: folder,
      providerSchema: () => Promise.resolve(configuredProviderSchema),
    });
  },
);

const asText = (part: unknown): string =>
  typeof part === "string" ? part : JSON.stringify(part, null, 1);
