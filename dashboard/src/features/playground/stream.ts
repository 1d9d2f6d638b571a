/** What an answer has been so far. */
export interface Answer {
  text: string;
  state: "waiting" | "streaming" | "done" | "stopped" | "failed";
  problem?: string;
  model?: string;
  providers?: string;
  firstTokenMs?: number;
  totalMs?: number;
  tokens?: number;
  costUsd?: number;
  generationId?: string;
}

/** One message of a conversation. */
export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** What is asked of a model. */
export interface Question {
  model: string;
  messages: readonly Message[];
  temperature?: number;
  max_tokens?: number;
}

interface Chunk {
  id?: string;
  model?: string;
  choices?: readonly { delta?: { content?: string | null } }[];
  usage?: { completion_tokens?: number; cost?: number };
  error?: { message?: string };
}

/** The events of a stream, one JSON text each. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") yield line.slice(6);
  }
}

const read = (chunk: Chunk, before: Answer, startedMs: number): Answer => {
  const piece = chunk.choices?.[0]?.delta?.content ?? "";
  return {
    ...before,
    text: before.text + piece,
    ...(piece !== "" && before.firstTokenMs === undefined ? { firstTokenMs: performance.now() - startedMs } : {}),
    ...(chunk.model === undefined ? {} : { model: chunk.model }), ...(chunk.id === undefined ? {} : { generationId: chunk.id }),
    ...(chunk.usage?.cost === undefined ? {} : { costUsd: chunk.usage.cost }),
    ...(chunk.usage?.completion_tokens === undefined ? {} : { tokens: chunk.usage.completion_tokens }),
    ...(chunk.error === undefined ? {} : { state: "failed" as const, problem: chunk.error.message ?? "The answer broke off." }),
  };
};

/** Asks a model and tells of the answer as it comes. The key is held in memory alone. */
export async function askModel(question: Question, { secret, signal, onAnswer }: {
  secret: string; signal: AbortSignal; onAnswer: (answer: Answer) => void;
}): Promise<void> {
  const startedMs = performance.now();
  let answer: Answer = { text: "", state: "waiting" };
  const tell = (next: Answer): void => onAnswer(answer = next);
  try {
    const response = await fetch("/api/v1/chat/completions", {
      method: "POST", signal, credentials: "omit", headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ ...question, stream: true, stream_options: { include_usage: true } }),
    });
    const providers = response.headers.get("x-service-provider-chain");
    if (providers !== null) answer = { ...answer, providers };
    if (!response.ok || response.body === null) {
      const body = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
      return tell({ ...answer, state: "failed", problem: body.error?.message ?? `The service answered ${response.status}.` });
    }
    for await (const event of eventsOf(response.body)) tell({ ...read(JSON.parse(event) as Chunk, { ...answer, state: "streaming" }, startedMs) });
    tell({ ...answer, state: answer.state === "failed" ? "failed" : "done", totalMs: performance.now() - startedMs });
  } catch (error) {
    if (signal.aborted) return tell({ ...answer, state: "stopped", totalMs: performance.now() - startedMs });
    tell({ ...answer, state: "failed", problem: error instanceof Error ? error.message : String(error) });
  }
}
