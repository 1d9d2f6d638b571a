import { expect, test } from "bun:test";
import { z } from "zod";
import type { ConfigurationWarning } from "./configuration-warnings.ts";
import { loadConfiguration } from "./load-configuration.ts";

const mib = 1024 ** 2;

async function load(limitMib: number | undefined, yaml = "") {
  const warnings: ConfigurationWarning[] = [];
  const { server } = await loadConfiguration({
    environment: { DATABASE_URL: "postgres://h/d", REDIS_URL: "redis://h" },
    workingDirectory: "/srv/gateway",
    providerSchema: async () => z.strictObject({}),
    // A gateway that shares a database warns of files that only it finds.
    readFile: () => `files: { url: "s3://bucket" }\n${yaml}`,
    memoryLimitBytes: limitMib === undefined ? undefined : limitMib * mib,
    onWarning: (warning) => warnings.push(warning),
  });
  return [server.bodyMemoryBytes / mib, warnings.map(({ message }) => message).join()] as const;
}

test.each([
  [undefined, "", 256],
  [4_096, "", 256],
  [1_024, "", 216],
  [512, "", 88],
  [2_048, "server: { processes: 4 }", 88],
  [2_048, "server: { body_memory_mb: 300 }", 300],
])("within %p MiB, %p leaves %d MiB for bodies and warns of nothing", async (limit, yaml, held) => {
  expect(await load(limit, yaml)).toEqual([held, ""]);
});

test.each([
  [256, "", 32, "bodies of 32 MiB need about 288 MiB in all, and the control group allows 256 MiB"],
  [256, "server: { body_memory_mb: 256 }", 256, "give it more memory, or set it to 32"],
  [1_024, "server: { body_memory_mb: 256 }", 256, "give it more memory, or set it to 216"],
  [1_024, "server: { processes: 4 }", 32, "need about 1152 MiB in all"],
])("within %d MiB, %p is warned of", async (limit, yaml, held, text) => {
  const [mebibytes, warning] = await load(limit, yaml);
  expect(mebibytes).toBe(held);
  expect(warning).toContain(text);
});
