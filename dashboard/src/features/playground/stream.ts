import { ApiError, send, sendingAsWritten } from "../../lib/api.ts";
import { withPlaygroundKey } from "../../lib/playground-key.ts";
import type { ChatBody } from "./draft.ts";

/** A tool that a model wants to be called. */
interface ToolCall {
  name: string;
  arguments: string;
}

/** What an answer has been so far. */
export interface Answer {
  text: string;
  reasoning: string;
  calls: readonly ToolCall[];
  /** Pictures that the model made, as data URLs. */
  pictures: readonly string[];
  /** Sounds that the model made, as data URLs. */
  sounds: readonly string[];
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  problem?: string;
  /** The refusal, where the service answered with one. */
  refusal?: ApiError;
  traceId?: string;
  model?: string;
  providers?: string;
  firstTokenMs?: number;
  /** How long the model thought before its first word. */
  thoughtMs?: number;
  totalMs?: number;
  tokens?: number;
  costUsd?: number;
  generationId?: string;
}

/** How a model is asked. */
export interface AskOptions {
  /** The workspace that pays. */
  workspaceId: string;
  signal: AbortSignal;
  /** Called with each state of the answer. */
  onAnswer: (answer: Answer) => void;
}

/** An answer of which nothing has come. */
export const noAnswer: Omit<Answer, "state"> = {
  text: "",
  reasoning: "",
  calls: [],
  pictures: [],
  sounds: [],
};

interface Delta {
  content?: string | null;
  reasoning?: string | null;
  reasoning_content?: string | null;
  images?: readonly { image_url?: { url?: string } }[];
  tool_calls?: readonly { index: number; function?: { name?: string; arguments?: string } }[];
}

interface Chunk {
  id?: string;
  model?: string;
  choices?: readonly { delta?: Delta }[];
  usage?: { completion_tokens?: number; cost?: number } | null;
  error?: { message?: string };
}

/** The events of a stream, one JSON text each. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines)
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield line.slice(6);
  }
}

function withCalls(
  calls: readonly ToolCall[],
  pieces: NonNullable<Delta["tool_calls"]>,
): readonly ToolCall[] {
  const next = [...calls];
  for (const { index, function: piece } of pieces) {
    const before = next[index] ?? { name: "", arguments: "" };
    next[index] = {
      name: before.name + (piece?.name ?? ""),
      arguments: before.arguments + (piece?.arguments ?? ""),
    };
  }
  return next;
}

/** Pictures of a delta that the page may show: those that come with the answer itself. */
const picturesOf = ({ images = [] }: Delta): string[] =>
  images.flatMap(({ image_url: image }) =>
    image?.url?.startsWith("data:image/") ? [image.url] : [],
  );

const read = (chunk: Chunk, before: Answer, startedMs: number): Answer => {
  const delta = chunk.choices?.[0]?.delta ?? {};
  const [text, reasoning] = [delta.content ?? "", delta.reasoning ?? delta.reasoning_content ?? ""];
  const pictures = picturesOf(delta);
  const hasContent =
    text !== "" || reasoning !== "" || delta.tool_calls !== undefined || pictures.length > 0;
  const elapsedMs = performance.now() - startedMs;
  return {
    ...before,
    text: before.text + text,
    reasoning: before.reasoning + reasoning,
    calls: withCalls(before.calls, delta.tool_calls ?? []),
    pictures: pictures.length === 0 ? before.pictures : [...before.pictures, ...pictures],
    ...(hasContent && before.firstTokenMs === undefined ? { firstTokenMs: elapsedMs } : {}),
    ...(text !== "" && before.text === "" && before.reasoning !== ""
      ? { thoughtMs: elapsedMs - (before.firstTokenMs ?? 0) }
      : {}),
    ...(chunk.model === undefined ? {} : { model: chunk.model }),
    ...(chunk.id === undefined ? {} : { generationId: chunk.id }),
    ...(chunk.usage?.cost === undefined ? {} : { costUsd: chunk.usage.cost }),
    ...(chunk.usage?.completion_tokens === undefined
      ? {}
      : { tokens: chunk.usage.completion_tokens }),
    ...(chunk.error === undefined
      ? {}
      : { state: "failed" as const, problem: chunk.error.message ?? "The answer broke off." }),
  };
};

/** An answer that ended with an error of the service or of the page. */
export function refusedAnswer(answer: Answer, error: unknown): Answer {
  const traceId = error instanceof ApiError ? error.traceId : null;
  return {
    ...answer,
    state: "failed",
    problem: error instanceof Error ? error.message : String(error),
    ...(traceId === null ? {} : { traceId }),
    ...(error instanceof ApiError ? { refusal: error } : {}),
  };
}

/**
 * Asks a model and shows its answer as it comes; what goes wrong is part of the answer. Gives the
 * answer as it ended.
 */
export async function askModel(
  body: ChatBody,
  { workspaceId, signal, onAnswer }: AskOptions,
): Promise<Answer> {
  const startedMs = performance.now();
  let answer: Answer = { ...noAnswer, state: "waiting" };
  const show = (next: Answer): Answer => {
    onAnswer((answer = next));
    return answer;
  };
  show(answer);
  try {
    const response = await withPlaygroundKey(workspaceId, (key) =>
      send("/chat/completions", {
        ...sendingAsWritten({ ...body, stream: true, stream_options: { include_usage: true } }),
        signal,
        key,
      }),
    );
    const providers = response.headers.get("x-service-provider-chain");
    if (providers !== null) answer = { ...answer, providers };
    if (response.body === null) throw new Error("The service sent no answer.");
    for await (const event of eventsOf(response.body))
      show(read(JSON.parse(event) as Chunk, { ...answer, state: "streaming" }, startedMs));
    return show({
      ...answer,
      state: answer.problem === undefined ? "done" : "failed",
      totalMs: performance.now() - startedMs,
    });
  } catch (error) {
    if (signal.aborted)
      return show({ ...answer, state: "stopped", totalMs: performance.now() - startedMs });
    return show(refusedAnswer(answer, error));
  }
}
