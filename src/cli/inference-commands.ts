import { brand } from "../platform/kernel/brand.ts";
import { type CommandContext, CommandError } from "./terminal.ts";
import { runningGateway } from "./gateway-api.ts";

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

/** A chunk of a streamed chat answer, as far as it is shown. */
interface Chunk {
  model?: string;
  choices?: { delta?: { content?: string | null } }[];
  usage?: { cost?: number; prompt_tokens?: number; completion_tokens?: number };
  error?: { message?: string };
  [brand.metadataKey]?: unknown;
}

/** The data of server-sent events, one after the other. */
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
 * Asks one question and shows the answer as it comes; who served it and what it cost follow on
 * stderr.
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
