import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { startGateway, testManagementKey } from "../../support/gateway.ts";
import { at, textAt } from "../api/at.ts";
import { pythonPathOf, testClientsFolder } from "./support/test-clients-folder.ts";

const packages = join(testClientsFolder, "python-openrouter");
const isInstalled = Bun.which("python3") !== null && existsSync(join(packages, "openrouter"));

const script = `
import os
from openrouter import OpenRouter
client = OpenRouter(api_key=os.environ["KEY"], server_url=os.environ["SERVER"])
print(client.api_keys.get_current_key_metadata().data.model_dump_json())
print(client.endpoints.list(author="sandbox", slug="chat:free").data.model_dump_json())
manager = OpenRouter(api_key=os.environ["MANAGER"], server_url=os.environ["SERVER"])
print(manager.analytics.get_user_activity().model_dump_json())
`;

/**
 * Returns the current key and a model's endpoints as OpenRouter's Python SDK reads them; it throws
 * where a field is missing.
 */
async function readBySdk(server: string, key: string): Promise<unknown[]> {
  const child = Bun.spawn(["python3", "-W", "ignore", "-c", script], {
    stdout: "pipe",
    stderr: "pipe",
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: pythonPathOf("python-openrouter"),
      PYTHONDONTWRITEBYTECODE: "1",
      KEY: key,
      MANAGER: testManagementKey,
      SERVER: server,
    },
  });
  const [shown, failure] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(failure).toBe("");
  return shown
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

// Installed by scripts/install-test-clients.mjs.
test.skipIf(!isInstalled)(
  "OpenRouter's Python SDK reads the current key, a model's endpoints and the activity",
  async () => {
    const gateway = await startGateway({ sandbox: true });
    const create = async (path: string, body: unknown): Promise<unknown> =>
      (
        await gateway.post(path, body, {
          headers: { authorization: `Bearer ${testManagementKey}` },
        })
      ).json();
    const made = await create("/keys", { name: "laptop", limit: 5, limit_reset: "daily" });
    const subject = textAt(made, "data.id");
    const budget = { name: "laptop", scope: "key", subject, action: "block", limit: 2 };
    const budgetId = textAt(await create("/budgets", budget), "data.id");
    // Others' spending is none of the key's business.
    await create("/budgets", { name: "all", scope: "workspace", action: "block", limit: 1 });
    const secret = textAt(made, "key");
    const messages = [{ role: "user", content: "Hello" }];
    const asked = { model: "sandbox/chat:free", messages };
    await (await gateway.post("/chat/completions", asked)).text();
    const [shown, listed, activity] = await readBySdk(gateway.baseUrl, secret);
    expect(activity).toMatchObject({
      data: [
        {
          model: "sandbox/chat:free",
          endpoint_id: "sandbox/sandbox/chat:free",
          requests: 1,
          usage: 0,
        },
      ],
    });
    expect(listed).toMatchObject({
      id: "sandbox/chat:free",
      endpoints: [{ tag: "sandbox", native_tools: {}, pricing: { prompt: "0" } }],
    });
    const bound = { spend_usd: 0, include_byok: false, guardrail_id: null };
    const budgetBound = {
      ...bound,
      scope: "api_key",
      budget_id: budgetId,
      limit_usd: 2,
      remaining_usd: 2,
      reset_interval: "monthly",
      resets_at: expect.any(String),
    };
    expect(shown).toMatchObject({ limit: 5, limit_remaining: 5, effective_budget: budgetBound });
    expect(at(shown, "budgets")).toEqual([
      budgetBound,
      {
        ...bound,
        scope: "key_limit",
        budget_id: null,
        limit_usd: 5,
        remaining_usd: 5,
        reset_interval: "daily",
        resets_at: null,
      },
    ]);
    await gateway.stop();
  },
  240_000,
);
