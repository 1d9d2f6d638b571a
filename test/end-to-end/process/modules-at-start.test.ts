import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
  type ProcessOptions,
} from "../../support/process.ts";

const root = join(import.meta.dir, "..", "..", "..");
const preloadPath = join(root, "test", "support", "modules-on-signal.ts");

/** Packages that every start needs. */
const always = [
  "@pinojs/redact",
  "atomic-sleep",
  "hono",
  "ipaddr.js",
  "kysely",
  "on-exit-leak-free",
  "pino",
  "pino-std-serializers",
  "quick-format-unescaped",
  "safe-stable-stringify",
  "sonic-boom",
  "thread-stream",
  "zod",
];

/** Files and folders of the program that a start with no settings has no use for. */
const lateParts = [
  "src/billing/payments/open-payments.ts",
  "src/endpoints/ops/field-words.ts",
  "src/http/open-api/open-api.ts",
  "src/identity/people/create-identity.ts",
  "src/inference/catalog/configured/configured-provider.ts",
  "src/inference/sandbox/wire/",
  "src/insights/archive/archive-client.ts",
  "src/insights/archive/open-archive.ts",
  "src/insights/archive/outbox.ts",
  "src/mcp/okf/",
  "src/mcp/tools/",
  "src/platform/config/file-schema.ts",
  "src/platform/storage/postgres/",
  "src/platform/telemetry/exposition.ts",
];

/** A gateway, and the modules that it has loaded each time that it is asked for them. */
async function startWatched(
  options: ProcessOptions = {},
): Promise<{ gateway: GatewayProcess; modules(): Promise<string[]> }> {
  const file = join(temporaryDirectory(), "modules.json");
  const gateway = await startProcess({
    ...options,
    environment: { ...options.environment, MODULES_FILE: file },
    command: [process.execPath, "--preload", preloadPath, join(root, "src", "main.ts")],
  });
  let asked = 0;
  return {
    gateway,
    async modules() {
      gateway.child.kill("SIGUSR2");
      await gateway.stderrHas(`modules written ${(asked += 1)}\n`);
      return (JSON.parse(readFileSync(file, "utf8")) as string[]).filter(
        (path) => path !== preloadPath,
      );
    },
  };
}

function packagesOf(modules: readonly string[]): string[] {
  const names = modules.flatMap(
    (path) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].sort();
}

const filesOf = (modules: readonly string[], folder: string): string[] =>
  modules.filter((path) => path.startsWith(join(root, folder)));

afterAll(endProcesses);

describe("a start on existing data without settings", () => {
  const dataDirectory = temporaryDirectory();

  test("loads only the packages that every start needs", async () => {
    await (await startProcess({ dataDirectory })).terminate();
    const { gateway, modules } = await startWatched({ dataDirectory });
    const loaded = await modules();
    expect(packagesOf(loaded)).toEqual(always);
    expect(filesOf(loaded, "src/inference/sandbox/").length).toBeGreaterThan(0);
    expect(lateParts.flatMap((part) => filesOf(loaded, part))).toEqual([]);
    await gateway.terminate();
  });
});

test("a feature loads its library: a settings file, an archive, and metrics that are read", async () => {
  const { gateway, modules } = await startWatched({
    yaml: "retention: { generations_days: 30 }\n",
    environment: { CLICKHOUSE_URL: "clickhouse+http://127.0.0.1:9/records" },
  });
  expect(packagesOf(await modules())).toEqual([...always, "yaml", "@clickhouse/client"].sort());
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).toContain("# TYPE switchyard_");
  expect(packagesOf(await modules())).toContain("prom-client");
});
