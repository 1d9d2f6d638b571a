import { writeFileSync } from "node:fs";
import { systemClock } from "../platform/kernel/clock.ts";
import { CommandError, type CommandContext } from "./terminal.ts";
import { withAccount, runningGateway } from "./gateway-api.ts";
import { brand } from "../platform/kernel/brand.ts";

/** A key as the list shows it. */
interface KeyRecord {
  id: string;
  hash: string;
  name: string;
  label: string;
  disabled: boolean;
  limit: number | null;
  limit_remaining: number | null;
  limit_reset: string | null;
  last_used_at: string | null;
}

/** The options of a new key. */
interface NewKeyOptions {
  limit?: number;
  reset?: string;
  models?: readonly string[];
  expires?: string;
  rate?: number;
  team?: string;
}

const dollars = (amount: number | null): string => (amount === null ? "-" : `$${amount}`);

/** Creates an LLM key and shows its secret, once. */
export async function createKey(
  context: CommandContext,
  name: string,
  options: NewKeyOptions,
): Promise<void> {
  const { limit, reset, models, expires, rate, team } = options;
  const created = (await withAccount(context, (api) =>
    api.ask("POST", "/keys", {
      name,
      ...(limit === undefined ? {} : { limit }),
      ...(reset === undefined ? {} : { limit_reset: reset }),
      ...(models === undefined ? {} : { allowed_models: models }),
      ...(expires === undefined ? {} : { expires_at: expires }),
      ...(rate === undefined ? {} : { rate_limit: rate }),
      ...(team === undefined ? {} : { team_id: team }),
    }),
  )) as { key: string; data: KeyRecord };
  const { terminal } = context;
  if (terminal.result(created)) return;
  terminal.line(created.key);
  terminal.note(`This is the key ${name} (${created.data.id}); it is not shown again.`);
}

/** Lists the LLM keys of the workspace, disabled ones too. */
export async function listKeys(context: CommandContext): Promise<void> {
  const { data } = (await withAccount(context, (api) =>
    api.ask("GET", "/keys?include_disabled=true"),
  )) as { data: KeyRecord[] };
  const { terminal } = context;
  if (terminal.result(data)) return;
  if (data.length === 0)
    return terminal.line("There are no keys. Create one with: switchyard keys create NAME");
  terminal.table(data, [
    ["ID", ({ id }) => id],
    ["NAME", ({ name }) => name],
    ["KEY", ({ label }) => label],
    [
      "LIMIT",
      ({ limit, limit_reset: reset }) =>
        limit === null ? "-" : `${dollars(limit)} ${reset ?? "in 30 days"}`,
    ],
    ["LEFT", ({ limit_remaining: left }) => dollars(left)],
    ["LAST USED", ({ last_used_at: used }) => used ?? "never"],
    ["STATE", (key) => (key.disabled ? "disabled" : "active")],
  ]);
}

/** Revokes an LLM key by id, hash or name; it stops working at once. */
export async function revokeKey(context: CommandContext, wanted: string): Promise<void> {
  const revoked = await withAccount(context, async (api) => {
    const { data } = (await api.ask("GET", "/keys?include_disabled=true")) as { data: KeyRecord[] };
    const found = data.filter(({ id, hash, name }) => [id, hash, name].includes(wanted));
    const [key] = found;
    if (key === undefined)
      throw new CommandError(`there is no key ${wanted}; \`switchyard keys list\` shows them`);
    if (found.length > 1)
      throw new CommandError(
        `${found.length} keys are called ${wanted}; name one by its id: ${found.map(({ id }) => id).join(", ")}`,
      );
    await api.ask("DELETE", `/keys/${encodeURIComponent(key.id)}`);
    return key;
  });
  if (!context.terminal.result({ revoked: true, id: revoked.id, name: revoked.name })) {
    context.terminal.line(`The key ${revoked.name} (${revoked.id}) is revoked.`);
  }
}

/** The options of a grant. */
interface GrantOptions {
  workspace?: string;
  bucket: string;
  description?: string;
}

interface WorkspaceRecord {
  id: string;
  name: string;
}

/** Grants credits to a workspace, or to the only one where none is named. */
export async function grantCredits(
  context: CommandContext,
  amount: number,
  options: GrantOptions,
): Promise<void> {
  const grant = (await withAccount(context, async (api) => {
    const workspaceId =
      options.workspace ??
      onlyWorkspace((await api.ask("GET", `/admin/workspaces?limit=${namedMax}`)) as WorkspacePage);
    const { bucket, description } = options;
    return await api.ask("POST", "/admin/grants", {
      workspace_id: workspaceId,
      amount,
      bucket,
      ...(description === undefined ? {} : { description }),
    });
  })) as { id: string; workspace_id: string; amount: number; bucket: string };
  if (context.terminal.result(grant)) return;
  context.terminal.line(
    `${dollars(grant.amount)} (${grant.bucket}) granted to ${grant.workspace_id}, recorded as ${grant.id}.`,
  );
}

/** The most workspaces that are named to choose one from. */
const namedMax = 20;

interface WorkspacePage {
  data: readonly WorkspaceRecord[];
  total: number;
}

/** Returns the id of the only workspace. Throws with one workspace a line if there are several. */
function onlyWorkspace({ data, total }: WorkspacePage): string {
  const [first] = data;
  if (first === undefined) throw new CommandError("there is no workspace yet: sign up first", 2);
  if (total === 1) return first.id;
  const lines = data.map(({ id, name }) => `  ${id}  ${name}`);
  if (total > data.length)
    lines.push(`  and ${total - data.length} more; GET /admin/workspaces lists them all`);
  throw new CommandError(
    `there are ${total} workspaces; name one with --workspace:\n${lines.join("\n")}`,
    2,
  );
}

/** The contents of an export, by the API path that each is read from. */
const exportedPaths = {
  keys: "/keys?include_disabled=true",
  management_keys: "/management-keys?include_invalid=true",
  presets: "/presets",
  aliases: "/aliases",
  credits: "/credits",
  budgets: "/budgets",
  provider_keys: "/auth/byok",
  ip_allowlist: "/security/ip-allowlist",
  privacy: "/security/privacy",
  prompts: "/prompts",
  skills: "/skills",
  hubs: "/hubs",
  connections: "/connections",
  invoices: "/credits/invoices",
  spend: "/analytics/spend",
  generations: "/analytics/generations?limit=100",
  audit_log: "/security/audit",
} as const;

/**
 * Exports a workspace's data as one JSON document, without secrets; parts that are refused are
 * named in `left_out`.
 */
export async function exportWorkspace(
  context: CommandContext,
  output: string | undefined,
): Promise<void> {
  const document = await withAccount(context, async (api) => {
    const parts: Record<string, unknown> = {};
    const leftOut: Record<string, string> = {};
    for (const [name, path] of Object.entries(exportedPaths)) {
      try {
        parts[name] = await api.ask("GET", path);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        leftOut[name] = error.message;
      }
    }
    return {
      object: "workspace_export",
      exported_at: new Date(systemClock.nowMs()).toISOString(),
      ...parts,
      left_out: leftOut,
    };
  });
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if (output === undefined) return context.terminal.piece(text);
  writeFileSync(output, text, { mode: 0o600 });
  for (const problem of Object.values(document.left_out))
    context.terminal.note(`left out: ${problem}`);
  if (!context.terminal.result({ file: output, left_out: document.left_out }))
    context.terminal.line(`Exported to ${output}.`);
}

interface ModelRecord {
  id: string;
  context_length?: number | null;
  pricing?: { input_per_1m?: number; output_per_1m?: number };
}

/** Lists the models that can be called, or those whose id contains a text. */
export async function listModels(
  context: CommandContext,
  search: string | undefined,
): Promise<void> {
  const api = await runningGateway(context);
  const { data } = (await api.ask("GET", "/models")) as { data: ModelRecord[] };
  const found = data.filter(
    ({ id }) => search === undefined || id.toLowerCase().includes(search.toLowerCase()),
  );
  const { terminal } = context;
  if (terminal.result(found)) return;
  if (found.length === 0) return terminal.line("No model fits.");
  const price = (usd: number | undefined): string => (usd === undefined ? "-" : `$${usd}`);
  terminal.table(found, [
    ["MODEL", ({ id }) => id],
    ["CONTEXT", ({ context_length: tokens }) => String(tokens ?? "-")],
    ["INPUT/1M", ({ pricing }) => price(pricing?.input_per_1m)],
    ["OUTPUT/1M", ({ pricing }) => price(pricing?.output_per_1m)],
  ]);
}

/** The members of a streamed chat answer's chunk that are shown. */
interface Chunk {
  model?: string;
  choices?: { delta?: { content?: string | null } }[];
  usage?: { cost?: number; prompt_tokens?: number; completion_tokens?: number };
  error?: { message?: string };
  [brand.metadataKey]?: unknown;
}

/** Yields the data of server-sent events, one after another. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield line.slice("data: ".length);
  }
}

/**
 * Asks one question and shows the answer as it comes, followed on stderr by the provider and the
 * cost.
 */
export async function ask(
  context: CommandContext,
  question: string,
  options: { model: string | undefined; maxTokens: number },
): Promise<void> {
  const { terminal } = context;
  const api = await runningGateway(context);
  const response = await api.send("POST", "/chat/completions", {
    model: options.model ?? (await firstModel(api)),
    max_tokens: options.maxTokens,
    stream: true,
    messages: [{ role: "user", content: question }],
  });
  if (response.body === null) throw new CommandError("the gateway sent no answer");
  let [content, model, usage]: [string, string | undefined, Chunk["usage"]] = [
    "",
    undefined,
    undefined,
  ];
  for await (const data of eventsOf(response.body)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error !== undefined)
      throw new CommandError(
        `the answer broke off: ${chunk.error.message ?? "no reason was given"}`,
      );
    const piece = chunk.choices?.[0]?.delta?.content ?? "";
    content += piece;
    if (!terminal.json) terminal.piece(piece);
    model ??= chunk.model;
    usage = chunk.usage ?? usage;
  }
  if (terminal.result({ model, content, usage })) return;
  terminal.line();
  const tokens = `${usage?.prompt_tokens ?? 0} tokens in, ${usage?.completion_tokens ?? 0} out`;
  terminal.note(terminal.colour("dim", `${model ?? ""}: ${tokens}, $${usage?.cost ?? 0}`));
}

async function firstModel(api: Awaited<ReturnType<typeof runningGateway>>): Promise<string> {
  const { data } = (await api.ask("GET", "/models")) as { data: ModelRecord[] };
  const model = data.find(({ id }) => id.endsWith(":free")) ?? data[0];
  if (model === undefined)
    throw new CommandError(
      "the gateway serves no model yet: set a provider's key, or name a model with --model",
    );
  return model.id;
}
