import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brand } from "../../../src/platform/kernel/brand.ts";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { textAt } from "../api/at.ts";
import { linkIn, startMailServer, startWebhook } from "../api/receivers.ts";

const preloadPath = join(import.meta.dir, "..", "..", "support", "heap-on-signal.ts");

const upstream = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () =>
    Response.json({
      id: "x",
      object: "chat.completion",
      created: 1,
      model: "large",
      choices: [
        { index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    }),
});
const [mail, webhook] = [startMailServer(), startWebhook()];

/** No platform credential: only callers with keys of their own are served. */
const yaml = `
providers:
  - { id: acme, base_url: "http://127.0.0.1:${upstream.port}/v1", models: [{ id: acme/large, pricing: { prompt: "1", completion: "1" } }] }
webhooks: { allowed_networks: [127.0.0.0/8] }
`;

/** Written in the test's own way, so that nothing but the gateway can have put it anywhere. */
const passwords = ["correct horse battery staple one", "correct horse battery staple two"];
const providerKeys = [
  "sk-provider-key-of-the-caller-11111111",
  "sk-provider-key-of-the-caller-22222222",
];

const dataDirectory = temporaryDirectory();
const heapFile = join(temporaryDirectory(), "heap.json");
let gateway: GatewayProcess;
let cookie = "";
let heaps = 0;
/** Every secret that was shown once, by what it is. */
const secrets: Record<string, string> = {};

async function ask(
  method: string,
  path: string,
  { key, body }: { key?: string; body?: unknown } = {},
): Promise<unknown> {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers:
      key === undefined
        ? { cookie: `${brand.sessionCookie}=${cookie}`, origin: gateway.url }
        : { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const session = response.headers
    .getSetCookie()
    .find((line) => line.startsWith(`${brand.sessionCookie}=`));
  if (session !== undefined)
    cookie = session.slice(brand.sessionCookie.length + 1).split(";")[0] ?? "";
  const answer: unknown = await response.json();
  if (!response.ok)
    throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

const api = (method: string, path: string, body?: unknown): Promise<unknown> =>
  ask(method, `/api/v1${path}`, { body });
const chat = (key: string): Promise<unknown> =>
  ask("POST", "/v1/chat/completions", {
    key,
    body: { model: "acme/large", messages: [{ role: "user", content: "hi" }] },
  });

/** Text of the live heap. */
async function heap(): Promise<string> {
  gateway.child.kill("SIGUSR2");
  await gateway.stderrHas(`heap written ${(heaps += 1)}\n`);
  return readFileSync(heapFile, "utf8");
}

const found = (text: string, names: readonly string[] = Object.keys(secrets)): string[] =>
  names.filter((name) => text.includes(secrets[name] ?? "?"));

async function makePerson(): Promise<void> {
  const claim = /claim\?token=([0-9A-Za-z]{43})/.exec(gateway.stdoutLines.join("\n"))?.[1] ?? "";
  await ask("POST", "/api/auth/sign-up", {
    body: { name: "Owner", email: "owner@example.com", password: passwords[0], claim_token: claim },
  });
  secrets["a password"] = passwords[0] ?? "";
  secrets["a session"] = decodeURIComponent(cookie);
  secrets["a session's signature"] = decodeURIComponent(cookie).split(".")[1] ?? "";
  const changed = { current_password: passwords[0], new_password: passwords[1] };
  await ask("POST", "/api/auth/change-password", { body: changed });
  secrets["a changed password"] = passwords[1] ?? "";
  await ask("POST", "/api/auth/sign-in/email", {
    body: { email: "owner@example.com", password: passwords[1] },
  });
  secrets["another session"] = decodeURIComponent(cookie);
}

async function makeKeys(): Promise<void> {
  const llm = await api("POST", "/keys", { name: "one", allowed_endpoints: null });
  secrets["an LLM key that was rotated"] = textAt(llm, "key");
  const rotated = await api("POST", `/keys/${textAt(llm, "data.hash")}/rotate`);
  secrets["an LLM key"] = textAt(rotated, "key");
  const child = await ask("POST", "/api/v1/key/children", {
    key: secrets["an LLM key"] ?? "",
    body: { name: "c" },
  });
  secrets["a child key"] = textAt(child, "key");
  secrets["a management key"] = textAt(
    await api("POST", "/management-keys", { name: "m", scopes: ["read:credits"] }),
    "key",
  );
  await ask("GET", "/api/v1/credits", { key: secrets["a management key"] ?? "" });
  const budget = await api("POST", "/budgets", { name: "b", limit: 1, webhook_url: webhook.url });
  secrets["a webhook's secret"] = textAt(budget, "webhook_secret");
}

async function makeLinks(): Promise<void> {
  await ask("POST", "/api/auth/request-password-reset", { body: { email: "owner@example.com" } });
  const organization = textAt(await api("POST", "/organizations", { name: "Acme" }), "id");
  const invitation = await api("POST", `/organizations/${organization}/invitations`, {
    email: "guest@example.com",
  });
  secrets["an invitation"] = new URL(textAt(invitation, "url")).searchParams.get("token") ?? "";
  const userId = textAt(await api("GET", "/session"), "user.id");
  const reset = await api("POST", `/admin/users/${userId}/password-reset`);
  secrets["a link for another password"] =
    new URL(textAt(reset, "url")).searchParams.get("token") ?? "";
  for (const [index, received] of mail.mails.entries()) {
    secrets[`link ${index} that was sent`] =
      new URL(linkIn(received)).searchParams.get("token") ?? "";
  }
}

async function makeProviderKey(): Promise<void> {
  const made = await api("POST", "/auth/byok", { provider_id: "acme", api_key: providerKeys[0] });
  await chat(secrets["an LLM key"] ?? "");
  await api("PATCH", `/auth/byok/keys/${textAt(made, "id")}`, { api_key: providerKeys[1] });
  await chat(secrets["an LLM key"] ?? "");
}

beforeAll(async () => {
  gateway = await startProcess({
    dataDirectory,
    yaml,
    command: [process.execPath, "--preload", preloadPath, programPath("main")],
    environment: { LOG_LEVEL: "debug", HEAP_FILE: heapFile, SMTP_URL: mail.url },
  });
  await makePerson();
  await makeKeys();
  await makeLinks();
  await makeProviderKey();
}, 240_000);
afterAll(async () => {
  await endProcesses();
  await upstream.stop(true);
  mail.stop();
  webhook.stop();
});

describe("secrets that were shown or sent once", () => {
  test("include every kind of secret", () => {
    expect(Object.values(secrets).every((secret) => secret.length >= 20)).toBe(true);
    expect(Object.keys(secrets).length).toBeGreaterThanOrEqual(12);
  });

  test("are not in the live heap, except callers' provider keys while they are in use", async () => {
    secrets["a provider key that was replaced"] = providerKeys[0] ?? "";
    secrets["a provider key"] = providerKeys[1] ?? "";
    expect(found(await heap())).toContain("a provider key");
    gateway.child.kill("SIGUSR1");
    await gateway.stderrHas("time passed\n");
    expect(found(await heap())).toEqual([]);
  });

  test("are nowhere in what was logged", async () => {
    await gateway.stderrHas("heap written");
    expect(found(gateway.stderrText + gateway.stdoutLines.join("\n"))).toEqual([]);
  });

  test("are not in the database files, while the gateway runs and after it ended", async () => {
    const inFiles = (): string[] =>
      readdirSync(dataDirectory).flatMap((name) =>
        // The socket of the command holds nothing.
        name.endsWith(".sock") ? [] : found(readFileSync(join(dataDirectory, name), "latin1")),
      );
    expect(readdirSync(dataDirectory).some((name) => name.endsWith(".db"))).toBe(true);
    expect(inFiles()).toEqual([]);
    await gateway.terminate();
    expect(inFiles()).toEqual([]);
  });
});
