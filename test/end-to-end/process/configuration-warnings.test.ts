import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { runCommand } from "../command/run-command.ts";

afterAll(endProcesses);

const routers = (member: string): string =>
  `routers:\n  service/auto: { members: [sandbox/chat:free, ${member}] }\n`;

test("a start and a reload log what is probably not meant, and serve", async () => {
  const path = join(temporaryDirectory(), "gateway.yaml");
  writeFileSync(path, routers("openai/gpt-4o-minni"));
  const gateway = await startProcess({
    environment: { SWITCHYARD_CONFIG: path, SWITCHYARD_DATADIR: "/data" },
  });
  await gateway.stderrHas("did you mean SWITCHYARD_DATA_DIR?");
  await gateway.stderrHas(
    "openai/gpt-4o-minni is not in the catalog and is left out; did you mean openai/gpt-4o-mini?",
  );
  writeFileSync(path, routers("openai/gpt-4oo"));
  gateway.child.kill("SIGHUP");
  await gateway.stderrHas("openai/gpt-4oo is not in the catalog");
});

test("the check of a configuration shows it, and succeeds", async () => {
  const yaml = "providers:\n  - id: openai\n    api_key: ${OPENAI_API_KY}\n";
  const run = await runCommand(["check"], { yaml, environment: { OPENAI_API_KEY: "sk-1" } });
  expect(run).toMatchObject({ exitCode: 0, stdout: "The configuration can be used.\n" });
  expect(run.stderr).toMatch(/^warning: switchyard\.yaml:3 .*did you mean OPENAI_API_KEY\?$/m);
});
