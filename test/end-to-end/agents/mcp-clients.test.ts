import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import {
  startMcpUpstream,
  textTool,
  type McpUpstream,
} from "../../support/mcp-upstream/mcp-upstream.ts";
import { publicOrigin, startPeopled, type PeopledGateway } from "../api/people-browser.ts";
import { AppSide } from "../consent/flows.ts";
import { approveAt, firstMatch } from "../mcp/conformance/peopled-mcp.ts";
import { agentCommand, missingAgent, onlyLoopback } from "./support/agent-run.ts";

const model = "scripted/openai-chat";
const tool = "mcp__switchyard__get_credits";

let people: PeopledGateway;
let upstream: ScriptedUpstream;
/** Two servers of tools, which the gateway joins. */
const servers: Record<string, McpUpstream> = {};
let home = "";
beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const models = [
    {
      id: model,
      context_length: 262_144,
      max_completion_tokens: 131_072,
      pricing: { prompt: "0.50", completion: "1.50" },
    },
  ];
  const providers = [
    provider({
      id: "scripted",
      dialect: "openai-chat",
      base_url: upstream.baseUrl,
      api_key: "secret",
      models,
    }),
  ];
  servers["docs"] = startMcpUpstream([textTool("search", () => "found in the documents")]);
  servers["wiki"] = startMcpUpstream([textTool("read", () => "read in the wiki")]);
  let origin = publicOrigin;
  people = await startPeopled(undefined, {
    providers,
    publicUrl: () => origin,
    mcp: {
      servers: Object.entries(servers).map(([id, { url }]) => ({
        id,
        name: id,
        target: { transport: "streamable_http", url },
        auth: { type: "none" },
        allowedTools: null,
        priceNanoUsd: 0n,
        timeoutMs: undefined,
        resultBytesMax: undefined,
      })),
      allowedNetworks: [],
      maxRounds: 4,
    },
  });
  origin = people.gateway().origin;
  people.owner.origin = origin;
}, 240_000);
afterAll(async () => {
  await people.stop();
  await upstream.stop();
  for (const server of Object.values(servers)) await server.stop();
});
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "switchyard-mcp-agent-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const environment = (): Record<string, string> => ({
  ...onlyLoopback,
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  BROWSER: "true",
  TERM: "xterm",
  ANTHROPIC_BASE_URL: people.gateway().origin,
  ANTHROPIC_AUTH_TOKEN: testLlmKey,
  GATEWAY_KEY: testLlmKey,
  MCP_KEY: testManagementKey,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  CLAUDE_CODE_MAX_RETRIES: "0",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_TELEMETRY: "1",
});

const start = (agent: "claude" | "codex", ...parameters: string[]) =>
  Bun.spawn(agentCommand(agent, parameters), {
    cwd: home,
    env: environment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });

/** Runs an agent to its end; gives what it printed. */
async function run(agent: "claude" | "codex", ...parameters: string[]): Promise<string> {
  const child = start(agent, ...parameters);
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode !== 0)
    throw new Error(`${agent} ${parameters[0]} ended with ${exitCode}: ${output}${errors}`);
  return output;
}

/** A model that asks for the tool, and then says that it is done. */
const scriptToolCall = (): void =>
  upstream.say(
    { text: ["I look."], calls: [{ id: "call_1", name: tool, arguments: {} }] },
    { text: ["That is all."] },
  );

/** Returns the body of the model's last request, which holds the tool's result. */
const toldToModel = (): string => upstream.requests.at(-1)?.body ?? "";

/** A model that asks for a tool of each server, and then says that it is done. */
const scriptTwoServers = (): void =>
  upstream.say(
    { calls: [{ id: "call_1", name: "mcp__tools__docs__search", arguments: { text: "x" } }] },
    { calls: [{ id: "call_2", name: "mcp__tools__wiki__read", arguments: { text: "x" } }] },
    { text: ["That is all."] },
  );

const allUrl = (): string => `${people.gateway().origin}/mcp/all`;
const mcpUrl = (): string => `${people.gateway().origin}/mcp`;
const registered = (redirect: string): Promise<string> =>
  new AppSide(people.gateway().baseUrl).clientId({
    redirect_uris: [redirect],
    client_name: "An agent",
  });

const missingClaude = missingAgent("claude");
describe.skipIf(missingClaude !== undefined)(
  `Claude Code${missingClaude ? ` (missing: ${missingClaude})` : ""}`,
  () => {
    const ask = async (): Promise<void> => {
      scriptToolCall();
      const output = await run(
        "claude",
        "-p",
        "How many credits are left?",
        "--model",
        model,
        "--output-format",
        "stream-json",
        "--verbose",
        "--allowedTools",
        tool,
      );
      expect(output).toContain("That is all.");
      expect(toldToModel()).toContain("topup_balance");
    };

    test("calls a tool with a key", async () => {
      await run(
        "claude",
        "mcp",
        "add",
        "--transport",
        "http",
        "switchyard",
        mcpUrl(),
        "--header",
        `Authorization: Bearer ${testManagementKey}`,
      );
      expect(await run("claude", "mcp", "list")).toContain("Connected");
      await ask();
    }, 240_000);

    test("calls a tool with an OAuth token", async () => {
      const clientId = await registered("http://localhost/callback");
      await run(
        "claude",
        "mcp",
        "add",
        "--transport",
        "http",
        "--client-id",
        clientId,
        "switchyard",
        mcpUrl(),
      );
      await signClaudeIn("switchyard");
      await ask();
    }, 240_000);

    test("logs in once and uses two upstream servers", async () => {
      const clientId = await registered("http://localhost/callback");
      const add = ["mcp", "add", "--transport", "http", "--client-id", clientId];
      await run("claude", ...add, "tools", allUrl());
      await signClaudeIn("tools");
      scriptTwoServers();
      const allowed = "mcp__tools__docs__search,mcp__tools__wiki__read";
      const output = await run(
        "claude",
        "-p",
        "Look.",
        "--model",
        model,
        "--allowedTools",
        allowed,
      );
      expect(output).toContain("That is all.");
      expect(toldToModel()).toContain("found in the documents");
      expect(toldToModel()).toContain("read in the wiki");
    }, 240_000);
  },
);

/** Signs Claude Code in where a person is at a terminal; it does so nowhere else. */
async function signClaudeIn(name: string): Promise<void> {
  const printed = new TransformStream<Uint8Array>();
  const writer = printed.writable.getWriter();
  const child = Bun.spawn(agentCommand("claude", ["mcp", "login", name]), {
    cwd: home,
    env: environment(),
    terminal: { cols: 2_000, rows: 40, data: (_, data) => void writer.write(data) },
  });
  const { match } = await firstMatch(
    printed.readable,
    /https?:[^\s\u0007\u001b]+\/authorize\?[^\s\u0007\u001b]+(?=[\s\u0007\u001b])/,
  );
  expect((await approveAt(people.owner, match)).status).toBe(200);
  expect(await child.exited).toBe(0);
}

const missingCodex = missingAgent("codex");
describe.skipIf(missingCodex !== undefined)(
  `Codex${missingCodex ? ` (missing: ${missingCodex})` : ""}`,
  () => {
    const configure = () =>
      Bun.write(
        join(home, ".codex", "config.toml"),
        `
    model = "${model}"
    model_provider = "gateway"
    check_for_update_on_startup = false
    analytics.enabled = false
    [model_providers.gateway]
    name = "gateway"
    base_url = "${people.gateway().origin}/v1"
    env_key = "GATEWAY_KEY"
    wire_api = "responses"
    request_max_retries = 0
    stream_max_retries = 0
  `,
      );
    const ask = async (): Promise<void> => {
      scriptToolCall();
      const output = await run(
        "codex",
        "exec",
        "--skip-git-repo-check",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "Credits?",
      );
      expect(output).toContain('"type":"mcp_tool_call","server":"switchyard","tool":"get_credits"');
      expect(output).toContain("That is all.");
      expect(toldToModel()).toContain("topup_balance");
    };

    test("calls a tool with a key", async () => {
      await configure();
      await run(
        "codex",
        "mcp",
        "add",
        "switchyard",
        "--url",
        mcpUrl(),
        "--bearer-token-env-var",
        "MCP_KEY",
      );
      await ask();
    }, 240_000);

    test("calls a tool with an OAuth token", async () => {
      await configure();
      const clientId = await registered("http://127.0.0.1/callback");
      const child = start(
        "codex",
        "mcp",
        "add",
        "switchyard",
        "--url",
        mcpUrl(),
        "--oauth-client-id",
        clientId,
      );
      const { match } = await firstMatch(child.stdout, /https?:\S+\/authorize\?\S+(?=\s)/);
      expect((await approveAt(people.owner, match)).status).toBe(200);
      expect(await child.exited).toBe(0);
      await ask();
    }, 240_000);

    test("logs in once and uses two upstream servers", async () => {
      await configure();
      const clientId = await registered("http://127.0.0.1/callback");
      const add = ["mcp", "add", "tools", "--url", allUrl(), "--oauth-client-id", clientId];
      const child = start("codex", ...add);
      const { match } = await firstMatch(child.stdout, /https?:\S+\/authorize\?\S+(?=\s)/);
      expect((await approveAt(people.owner, match)).status).toBe(200);
      expect(await child.exited).toBe(0);
      scriptTwoServers();
      const output = await run(
        "codex",
        "exec",
        "--skip-git-repo-check",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "Look.",
      );
      expect(output).toContain("That is all.");
      expect(toldToModel()).toContain("found in the documents");
      expect(toldToModel()).toContain("read in the wiki");
    }, 240_000);
  },
);
