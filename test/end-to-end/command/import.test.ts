import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "yaml";
import { testManagementKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatCompletion } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../api/at.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { jsonOf, runCommand } from "./run-command.ts";

let upstream: FaultUpstream;

beforeAll(async () => {
  upstream = await startFaultUpstream();
});
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

/** A folder with the files of a peer, and where the import writes to. */
function folderWith(files: Readonly<Record<string, string | object>>) {
  const folder = temporaryDirectory();
  for (const [name, content] of Object.entries(files))
    writeFileSync(
      join(folder, name),
      typeof content === "string" ? content : JSON.stringify(content, null, 2),
    );
  return {
    folder,
    config: join(folder, "switchyard.yaml"),
    file: (name: string) => join(folder, name),
  };
}

interface Finding {
  path: string;
  line: number | null;
  outcome: string;
  text: string;
}

const findingsOf = (result: unknown): Finding[] => at(result, "findings") as Finding[];
const finding = (result: unknown, path: string): Finding | undefined =>
  findingsOf(result).find((each) => each.path === path);

/** Imports, starts a gateway on what was written, and imports again, which fills the account. */
async function importAndStart(
  parameters: readonly string[],
  { folder, config }: { folder: string; config: string },
  variables: Readonly<Record<string, string>> = {},
) {
  const command = ["--json", "--config", config, "import", ...parameters];
  const first = await runCommand(command, { environment: variables });
  expect([first.stderr, first.exitCode]).toEqual(["", 0]);
  const checked = await runCommand(["--config", config, "check"], { environment: variables });
  expect(checked).toMatchObject({ exitCode: 0, stdout: "The configuration can be used.\n" });
  const secrets = existsSync(join(folder, "switchyard.env"))
    ? (parseEnv(readFileSync(join(folder, "switchyard.env"), "utf8")) as Record<string, string>)
    : {};
  const gateway = await startProcess({
    environment: { ...variables, ...secrets, ...bootstrapVariables, SWITCHYARD_CONFIG: config },
  });
  const online = { SWITCHYARD_URL: gateway.url, SWITCHYARD_MANAGEMENT_KEY: testManagementKey };
  const second = await runCommand(command, { environment: { ...variables, ...online } });
  expect([second.stderr, second.exitCode]).toEqual(["", 0]);
  const ask = (model: string, key: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
    });
  const read = async (path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${testManagementKey}` };
    return (await fetch(`${gateway.url}/v1${path}`, { headers })).json();
  };
  return { first: jsonOf(first), second: jsonOf(second), ask, read };
}

const keyNamed = (result: unknown, name: string): string =>
  (at(result, "created.keys") as { name: string; key: string }[]).find((each) => each.name === name)
    ?.key ?? "";

describe("switchyard import litellm", () => {
  const configuration = (): string => `model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/team-gpt-4o
      api_base: os.environ/AZURE_API_BASE
      api_key: os.environ/AZURE_API_KEY
      rpm: 6
    model_info: { base_model: azure/gpt-4o }
  - model_name: gpt-4o
    litellm_params:
      model: openai/gpt-4o
      api_key: os.environ/OPENAI_API_KEY
  - model_name: house-llama
    litellm_params:
      model: openai/llama-3-70b
      api_base: ${upstream.baseUrl}
      api_key: sk-house
      temperature: 0.2
      timeout: 30
    model_info:
      input_cost_per_token: 0.00000059
      output_cost_per_token: 7.9e-7
      max_input_tokens: 8192
  - model_name: house-llama-eu
    litellm_params: { model: openai/llama-3-70b, api_base: ${upstream.baseUrl}, api_key: sk-house-eu }
  - model_name: "anthropic/*"
    litellm_params: { model: "anthropic/*", api_key: os.environ/ANTHROPIC_API_KEY }
litellm_settings:
  num_retries: 3
  fallbacks: [{ "house-llama": ["house-llama-eu"] }]
  success_callback: ["langfuse"]
  max_budget: 100
  budget_duration: 30d
router_settings:
  routing_strategy: simple-shuffle
  model_group_alias: { "house": "house-llama" }
  provider_budget_config:
    openai: { budget_limit: 10, time_period: 1d }
general_settings:
  master_key: sk-1234
`;
  const virtualKeys = {
    keys: [
      {
        token: "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
        key_alias: "build server",
        spend: 0.4,
        max_budget: 20,
        budget_duration: "7d",
        rpm_limit: 60,
        tpm_limit: 90_000,
        models: ["house", "house-llama", "house-llama-eu"],
        team_id: "team-1",
        expires: "2030-01-01T00:00:00Z",
      },
      {
        token: "0f",
        key_alias: "everything",
        max_budget: 5,
        models: ["all-proxy-models"],
        allowed_routes: ["llm_api_routes"],
      },
    ],
    total_count: 2,
  };

  test("writes secrets so that a shell loads them as they are", async () => {
    const secret = "pa$HOME`id`\\n'q\"x!";
    const place = folderWith({
      "config.yaml": {
        model_list: [
          { model_name: "gpt-4o", litellm_params: { model: "openai/gpt-4o", api_key: secret } },
        ],
      },
    });
    const command = ["--json", "--config", place.config, "import", "litellm"];
    const imported = await runCommand([...command, place.file("config.yaml")]);
    const name = String(at(jsonOf(imported), "variables.names.0"));
    const script = 'set -a; . "$0"; set +a; printenv "$1"';
    const loaded = Bun.spawnSync(["sh", "-c", script, place.file("switchyard.env"), name]);
    expect(loaded.stdout.toString()).toBe(`${secret}\n`);
  });

  test("keeps the secrets of an earlier import in the folder, and replaces none unasked", async () => {
    const models = (vendor: string, apiKey: string) => ({
      model_list: [
        { model_name: "own", litellm_params: { model: `${vendor}/own`, api_key: apiKey } },
      ],
    });
    const place = folderWith({
      "a.yaml": models("openai", "sk-$a'\nNAME=b"),
      "b.yaml": models("groq", "gsk-b"),
      "c.yaml": models("openai", "sk-c"),
    });
    const importOf = (name: string, ...options: string[]) =>
      runCommand([
        ...["--config", place.file(`to-${name}`), "import", "litellm"],
        ...[place.file(name), ...options],
      ]);
    const loaded = (): string[] => {
      const script = 'set -a; . "$0"; printenv OPENAI_API_KEY; printenv GROQ_API_KEY';
      const shell = Bun.spawnSync(["sh", "-c", script, place.file("switchyard.env")], { env: {} });
      return shell.stdout.toString().trimEnd().split("\n");
    };
    for (const name of ["a.yaml", "b.yaml"])
      expect(await importOf(name)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(loaded()).toEqual(["sk-$a'", "NAME=b", "gsk-b"]);
    expect(await importOf("c.yaml")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("other values of OPENAI_API_KEY: replace them with --force"),
    });
    expect(existsSync(place.file("to-c.yaml"))).toBe(false);
    expect(await importOf("c.yaml", "--force")).toMatchObject({ exitCode: 0 });
    expect(loaded()).toEqual(["sk-c", "gsk-b"]);
  });

  test("writes a configuration that starts, keeps names and creates keys, presets and budgets", async () => {
    const place = folderWith({ "config.yaml": configuration(), "keys.json": virtualKeys });
    const { first, second, ask, read } = await importAndStart(
      ["litellm", place.file("config.yaml"), "--keys", place.file("keys.json")],
      place,
    );
    expect(first).toMatchObject({
      configuration: { written: true },
      created: null,
      pending: expect.stringContaining("switchyard start"),
    });
    expect(second).toMatchObject({ configuration: { written: false }, pending: null });
    expect(statSync(place.file("switchyard.env")).mode & 0o777).toBe(0o600);
    const written = readFileSync(place.config, "utf8");
    for (const secret of ["sk-house", "sk-1234"]) expect(written).not.toContain(secret);
    expect(at(parse(written), "providers.0.models.0")).toEqual({
      id: "openai/gpt-4o",
      upstream_model: "team-gpt-4o",
      pricing: { prompt: "2.5", completion: "10", cache_read: "1.25" },
    });

    const key = keyNamed(second, "build server");
    upstream.script(json(chatCompletion({ text: "So." })));
    for (const model of ["house-llama", "house", "@preset/house-llama"]) {
      const answer = await ask(model, key);
      expect([model, answer.status]).toEqual([model, 200]);
      expect(at(await answer.json(), "choices.0.message.content")).toBe("So.");
      expect(upstream.requests.at(-1)?.json()).toMatchObject({ model: "llama-3-70b" });
    }
    expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe("Bearer sk-house");
    expect((await ask("gpt-4o", key)).status).toBe(403);

    expect(at(await read("/keys"), "data")).toContainEqual(
      expect.objectContaining({
        name: "build server",
        limit: 20,
        limit_reset: "weekly",
        rate_limit: 60,
        tpm: 90_000,
        expires_at: "2030-01-01T00:00:00.000Z",
      }),
    );
    expect(at(await read("/keys"), "data")).toContainEqual(
      expect.objectContaining({
        name: "everything",
        allowed_endpoints: expect.arrayContaining(["/api/v1/messages"]),
      }),
    );
    expect(at(await read("/presets/house-llama"), "config")).toMatchObject({ temperature: 0.2 });
    const budgets = at(await read("/budgets"), "data") as object[];
    expect(
      budgets.map((each) => [at(each, "scope"), at(each, "limit"), at(each, "period")]),
    ).toEqual(
      expect.arrayContaining([
        ["workspace", 100, "monthly"],
        ["provider", 10, "daily"],
      ]),
    );
  });

  test("creates a preset that falls back when the first model's server fails", async () => {
    const place = folderWith({ "config.yaml": configuration() });
    const { ask, second } = await importAndStart(["litellm", place.file("config.yaml")], place);
    expect(at(second, "created.presets")).toContain("house-llama");
    upstream.script(({ headers }) =>
      headers.get("authorization") === "Bearer sk-house-eu"
        ? json(chatCompletion({ text: "EU." }))
        : json({ error: { message: "down" } }, { status: 500 }),
    );
    const answer = await ask(
      "@preset/house-llama",
      bootstrapVariables.SWITCHYARD_BOOTSTRAP_LLM_KEY,
    );
    expect(at(await answer.json(), "choices.0.message.content")).toBe("EU.");
    expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe("Bearer sk-house-eu");
  });

  test("names each line without a counterpart and writes nothing on a dry run", async () => {
    const place = folderWith({ "config.yaml": configuration(), "keys.json": virtualKeys });
    const parameters = [
      "import",
      "litellm",
      place.file("config.yaml"),
      "--keys",
      place.file("keys.json"),
      "--dry-run",
    ];
    const result = jsonOf(await runCommand(["--json", "--config", place.config, ...parameters]));
    expect(existsSync(place.config)).toBe(false);
    const lines = configuration().split("\n");
    for (const [path, word] of [
      ["model_list[0].litellm_params.rpm", "rpm: 6"],
      ["litellm_settings.num_retries", "num_retries"],
      ["litellm_settings.success_callback", "success_callback"],
      ["router_settings.routing_strategy", "routing_strategy"],
      ["general_settings.master_key", "master_key"],
    ] as const) {
      const found = finding(result, path);
      expect([path, found?.outcome]).toEqual([path, "left_out"]);
      expect(lines[(found?.line ?? 0) - 1]).toContain(word);
    }
    expect(finding(result, "keys[0].team_id")?.outcome).toBe("left_out");
    expect(finding(result, "keys[1].max_budget")?.text).toContain("30 days");
    const shown = await runCommand(["--config", place.config, ...parameters]);
    expect(shown.stdout).toMatch(
      /^config\.yaml:7 left out model_list\[0\]\.litellm_params\.rpm: /m,
    );
    expect(shown.stdout).toContain("Nothing was written.");
  });

  test("refuses an unreadable file and an existing configuration", async () => {
    const place = folderWith({ "config.yaml": "model_list: [", "switchyard.yaml": "server: {}\n" });
    const broken = await runCommand(["import", "litellm", place.file("config.yaml")]);
    expect(broken).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("config.yaml:1 is neither"),
    });
    writeFileSync(place.file("config.yaml"), configuration());
    const taken = await runCommand([
      "--config",
      place.config,
      "import",
      "litellm",
      place.file("config.yaml"),
    ]);
    expect(taken).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--force") });
    expect(readFileSync(place.config, "utf8")).toBe("server: {}\n");
    expect((await runCommand(["import", "litellm", place.file("none.yaml")])).exitCode).toBe(2);
  });
});

describe("switchyard import portkey", () => {
  test("creates presets from configs, and keys from API keys", async () => {
    const place = folderWith({
      "configs.json": {
        success: true,
        data: [
          {
            slug: "pc-main-1",
            name: "Main",
            config: {
              retry: { attempts: 5, on_status_codes: [429] },
              cache: { mode: "simple", max_age: 3600 },
              strategy: { mode: "fallback", on_status_codes: [429, 500] },
              targets: [
                {
                  provider: "openai",
                  custom_host: upstream.baseUrl,
                  api_key: "sk-first",
                  override_params: { model: "house-model", temperature: 0.1 },
                },
                { virtual_key: "anthropic-prod", override_params: { model: "claude-sonnet-4-5" } },
              ],
            },
          },
        ],
      },
      "virtual-keys.json": {
        object: "list",
        data: [
          {
            object: "virtual-key",
            slug: "anthropic-prod",
            name: "Anthropic",
            ai_provider_name: "anthropic",
            status: "active",
            usage_limits: { credit_limit: 50, periodic_reset: "monthly", alert_threshold: 40 },
          },
        ],
      },
      "api-keys.json": {
        object: "list",
        data: [
          {
            object: "api-key",
            name: "Backend",
            status: "active",
            rate_limits: [{ type: "requests", unit: "rpm", value: 100 }],
            usage_limits: { credit_limit: 10, periodic_reset: "weekly" },
            scopes: ["completions.write"],
          },
        ],
      },
    });
    const files = ["configs.json", "virtual-keys.json", "api-keys.json"].map(place.file);
    const { first, second, ask, read } = await importAndStart(["portkey", ...files], place);
    upstream.script(json(chatCompletion({ text: "Here." })));
    const answer = await ask("@preset/main", keyNamed(second, "Backend"));
    expect(at(await answer.json(), "choices.0.message.content")).toBe("Here.");
    expect(upstream.requests.at(-1)?.json()).toMatchObject({
      model: "house-model",
      temperature: 0.1,
    });
    expect(at(await read("/presets/main"), "config")).toMatchObject({
      models: ["anthropic/claude-sonnet-4-5"],
    });
    expect(at(await read("/keys"), "data")).toContainEqual(
      expect.objectContaining({
        name: "Backend",
        limit: 10,
        limit_reset: "weekly",
        rate_limit: 100,
      }),
    );
    for (const path of ["data[0].config.retry", "data[0].config.cache", "data[0].scopes"])
      expect([path, finding(first, path)?.outcome]).toEqual([path, "left_out"]);
  });

  test("reads a single config and reports weights, which have no counterpart", async () => {
    const place = folderWith({
      "config.json": {
        strategy: { mode: "loadbalance" },
        targets: [
          { provider: "openai", api_key: "sk-***", weight: 0.7 },
          { provider: "azure-openai", api_key: "***", weight: 0.3 },
        ],
      },
    });
    const result = jsonOf(
      await runCommand([
        "--json",
        "--config",
        place.config,
        "import",
        "portkey",
        place.file("config.json"),
      ]),
    );
    expect(at(result, "records.presets.0.config")).toEqual({
      provider: { order: ["openai", "azure"] },
    });
    expect(finding(result, "targets[0].weight")?.outcome).toBe("left_out");
    expect(finding(result, "strategy.mode")?.outcome).toBe("changed");
    expect(at(result, "variables")).toBeNull();
  });
});

test("switchyard import openrouter imports keys with their limits, and presets", async () => {
  const place = folderWith({
    "keys.json": {
      data: [
        {
          hash: "f01d52606dc8f0a8303a7b5cc3fa07109c2e346cec7c0a16b40de462992ce943",
          name: "Production",
          label: "sk-or-v1-0e6...1c96",
          disabled: false,
          limit: 100,
          limit_remaining: 74.5,
          limit_reset: "monthly",
          include_byok_in_limit: false,
          usage: 25.5,
        },
      ],
    },
    "presets.json": {
      data: [
        {
          id: "650e8400-e29b-41d4-a716-446655440001",
          slug: "email-copywriter",
          name: "Email copywriter",
          status: "active",
          designated_version: {
            version: 1,
            system_prompt: "Write short mails.",
            config: {
              model: "sandbox/chat:free",
              temperature: 0.7,
              provider: { sort: "price", only: ["azure"] },
              plugins: [{ id: "web" }],
            },
          },
        },
      ],
    },
  });
  const { first, second, ask, read } = await importAndStart(
    ["openrouter", place.file("keys.json"), place.file("presets.json")],
    place,
  );
  const answer = await ask("@preset/email-copywriter", keyNamed(second, "Production"));
  expect(answer.status).toBe(200);
  expect(await read("/presets/email-copywriter")).toMatchObject({
    config: { system: "Write short mails.", temperature: 0.7, provider: { sort: "price" } },
  });
  expect(at(await read("/keys"), "data")).toContainEqual(
    expect.objectContaining({ name: "Production", limit: 100, limit_reset: "monthly" }),
  );
  for (const path of [
    "data[0].designated_version.config.plugins",
    "data[0].designated_version.config.provider.only",
  ])
    expect([path, finding(first, path)?.outcome]).toEqual([path, "left_out"]);
});

describe("switchyard import openai-env", () => {
  test("creates a provider for an OpenAI-compatible server, with its model", async () => {
    const place = folderWith({
      ".env": [
        'OPENAI_API_KEY="sk-local"',
        `OPENAI_BASE_URL=${upstream.baseUrl}/`,
        "OPENAI_MODEL=house-model",
        "ANTHROPIC_API_KEY=sk-ant-1",
        "DEBUG=1",
      ].join("\n"),
    });
    const { first, ask } = await importAndStart(["openai-env", place.file(".env")], place);
    upstream.script(json(chatCompletion({ text: "Here." })));
    const answer = await ask("house-model", bootstrapVariables.SWITCHYARD_BOOTSTRAP_LLM_KEY);
    expect(at(await answer.json(), "choices.0.message.content")).toBe("Here.");
    expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe("Bearer sk-local");
    expect(finding(first, "ANTHROPIC_API_KEY")).toMatchObject({ outcome: "imported" });
    expect(finding(first, "DEBUG")).toMatchObject({ outcome: "left_out" });
  });

  test("reads the environment and leaves the values in it", async () => {
    const place = folderWith({});
    const result = jsonOf(
      await runCommand(["--json", "--config", place.config, "import", "openai-env"], {
        environment: { OPENAI_API_KEY: "sk-1", OPENAI_ORG_ID: "org-1", GROQ_API_KEY: "gsk-1" },
      }),
    );
    expect(at(result, "variables")).toBeNull();
    expect(at(parse(readFileSync(place.config, "utf8")), "providers")).toEqual([
      { id: "openai", api_key: "${OPENAI_API_KEY}", headers: { "OpenAI-Organization": "org-1" } },
      { id: "groq", api_key: "${GROQ_API_KEY}" },
    ]);
    expect(findingsOf(result).every(({ outcome }) => outcome === "imported")).toBe(true);
  });
});
