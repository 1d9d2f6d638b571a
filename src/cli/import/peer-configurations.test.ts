import { expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configuredProviderSchema } from "../../inference/catalog/configured/configured-provider.ts";
import { loadConfiguration } from "../../platform/config/load-configuration.ts";
import { Terminal } from "../terminal.ts";
import { importFrom, type ImportSource } from "./import-command.ts";
import type { ImportFinding } from "./source-document.ts";

const folder = join(import.meta.dirname, "../../../test/support/peer-configurations");

/** What an import with `--dry-run --json` prints. */
async function importedFrom(source: ImportSource, name: string) {
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
  await importFrom(context, source, [name], { dryRun: true });
  const result = JSON.parse(shown) as {
    configuration: { text: string };
    variables: { names: string[] } | null;
    records: { keys: unknown[]; presets: unknown[]; budgets: unknown[] };
    findings: ImportFinding[];
  };
  return { shown, ...result };
}

const asText = (part: unknown): string =>
  typeof part === "string" ? part : JSON.stringify(part, null, 1);

test.each<[source: ImportSource, name: string]>([
  ["tensorzero", "tensorzero.toml"],
  ["helicone", "helicone.yaml"],
  ["bifrost", "bifrost.json"],
])("%s is imported and reported as recorded, and the gateway loads it", async (source, name) => {
  const { shown, configuration, records, variables, findings } = await importedFrom(source, name);
  const report = findings.map(
    ({ file, line, outcome, path, text }) =>
      `${file.split("/").at(-1)}:${line} ${outcome} ${path}: ${text.replaceAll(folder, ".")}`,
  );
  expect([configuration.text, records, report].map(asText).join("\n")).toMatchSnapshot();
  // Secrets of the file are in no output: neither configuration nor report has them.
  expect(shown).not.toMatch(/sk-literal|hush-this|sk-bf-this/);

  const file = join(mkdtempSync(join(tmpdir(), "peer-")), "switchyard.yaml");
  writeFileSync(file, configuration.text);
  const secrets = (variables?.names ?? []).map((variable) => [variable, "a-secret"] as const);
  const environment = { ...Object.fromEntries(secrets), SWITCHYARD_CONFIG: file };
  await loadConfiguration({
    environment,
    workingDirectory: folder,
    providerSchema: () => Promise.resolve(configuredProviderSchema),
  });
});
