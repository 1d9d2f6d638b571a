import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { testManagementKey } from "../../support/gateway.ts";
import {
  endProcesses,
  type GatewayProcess,
  startProcess,
  temporaryDirectory,
} from "../../support/process.ts";
import { at } from "../api/at.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { jsonOf, runCommand } from "./run-command.ts";

let gateway: GatewayProcess;
const online = () => ({
  environment: { SWITCHYARD_URL: gateway.url, SWITCHYARD_MANAGEMENT_KEY: testManagementKey },
});

beforeAll(async () => {
  gateway = await startProcess({
    dataDirectory: temporaryDirectory(),
    environment: bootstrapVariables,
  });
});
afterAll(endProcesses);

const houseModel = `model_list:
  - model_name: house-llama
    litellm_params: { model: openai/llama-3-70b, api_base: "http://127.0.0.1:9/v1", api_key: sk-house }
`;

/** Imports LiteLLM's configuration and keys into a folder of their own. */
function importing(
  configuration: string,
  keys: readonly object[],
  parameters: readonly string[] = [],
) {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, "config.yaml"), configuration);
  writeFileSync(join(folder, "keys.json"), JSON.stringify({ keys }));
  const files = [join(folder, "config.yaml"), "--keys", join(folder, "keys.json")];
  const config = join(folder, "switchyard.yaml");
  return runCommand(
    [...parameters, "--config", config, "import", "litellm", ...files, "--force"],
    online(),
  );
}

const texts = (result: unknown, path: string): string[] =>
  (at(result, "findings") as { path: string; text: string }[])
    .filter((each) => each.path === path)
    .map(({ text }) => text);

describe("virtual keys of LiteLLM", () => {
  test("are shown as they are made, though others have expired or are refused", async () => {
    const run = await importing(houseModel, [
      { key_alias: "first of three", models: ["house-llama"] },
      { key_alias: "long gone", expires: "2020-01-01T00:00:00Z" },
      { key_alias: "no moment", expires: "soon" },
      { key_alias: "less than nothing", max_budget: -5 },
      { key_alias: "last of three" },
    ]);
    expect(run.exitCode).toBe(1);
    expect(run.stderr).toContain("the key less than nothing could not be made");
    expect(run.stdout).toMatch(/^Created the key first of three; .*: sk-svc-v1-\S+$/m);
    expect(run.stdout).toMatch(/^Created the key last of three; .*: sk-svc-v1-\S+$/m);
    expect(run.stdout).toMatch(/left out keys\[1\]: the key long gone has expired \(2020-/);
    expect(run.stdout).toMatch(/left out keys\[2\]: the key no moment is not made: expires is no/);
    expect(run.stdout).toMatch(/^Not made: the key less than nothing: .*limit/m);
  });

  test("stay disabled, in the report and in the list", async () => {
    const run = await importing(
      houseModel,
      [{ key_alias: "blocked one", blocked: true }],
      ["--json"],
    );
    const result = jsonOf(run);
    expect(texts(result, "keys[0]").join()).toContain("blocked one, disabled as it was");
    expect(at(result, "created.keys.0")).toMatchObject({ name: "blocked one", disabled: true });
    const listed = await runCommand(["keys", "list"], online());
    expect(listed.stdout).toMatch(/blocked one .* disabled$/m);
  });

  test("are not widened where their models are those of a team", async () => {
    const run = await importing(
      houseModel,
      [
        { key_alias: "team words", models: ["all-team-models"] },
        { key_alias: "team without list", models: [], team_id: "team-1" },
        { key_alias: "no team", models: [] },
      ],
      ["--json"],
    );
    const result = jsonOf(run);
    const made = at(result, "created.keys") as { name: string; disabled: boolean }[];
    expect(made.map(({ name, disabled }) => [name, disabled])).toEqual([
      ["team words", true],
      ["team without list", true],
      ["no team", false],
    ]);
    for (const path of ["keys[0]", "keys[1]"])
      expect(texts(result, path).join()).toContain("are those of its team");
  });
});

describe("models of LiteLLM", () => {
  test("take Bedrock's price by base_model, in any region, and `*` adds no provider", async () => {
    const run = await importing(
      `model_list:
  - model_name: claude-of-ours
    litellm_params:
      model: bedrock/arn:aws:bedrock:eu-central-1:1:application-inference-profile/abc
    model_info: { base_model: bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0 }
  - model_name: "*"
    litellm_params: { model: "*" }
`,
      [],
      ["--json"],
    );
    const result = jsonOf(run);
    const text = at(result, "configuration.text") as string;
    expect(text).toContain('prompt: "3"');
    expect(text).toContain("id: amazon-bedrock");
    expect(text).not.toContain("id: openai");
    expect(texts(result, "model_list[1]").join()).toContain("every provider whose key is set");
  });
});
