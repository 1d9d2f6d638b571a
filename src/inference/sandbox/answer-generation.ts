import type { RequestTarget, SandboxDialect, UnderstoodRequest } from "./dialect.ts";
import { clientGone, cutConnection, play, waitMs } from "./play.ts";
import { completePrompt } from "./prompt.ts";
import { obeyBeforeAnswer, refuse, seedOf, understand } from "./refuse.ts";
import { choiceTokens, type SimulatedReply } from "./reply.ts";
import { simulate } from "./simulate.ts";

/** One HTTP request as the sandbox works on it. */
export interface Incoming {
  bodyText: string;
  target: RequestTarget;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
  createdAtSeconds: number;
}

/**
 * Answers a generation request in its dialect: whole or streamed, refused or broken off as
 * directed.
 */
export async function answerGeneration(
  dialect: SandboxDialect,
  incoming: Incoming,
): Promise<Response> {
  const { bodyText, target, signal, createdAtSeconds } = incoming;
  const seed = seedOf(bodyText);
  const understood = understand(bodyText, (body) => dialect.read(body, target));
  if (!understood.ok) return refuse(dialect, { ...understood, requestId: seed });
  const { request } = understood;
  const prompt = completePrompt(request.prompt, { seed, createdAtSeconds });
  const refused = await obeyBeforeAnswer(prompt.directives, { dialect, requestId: seed, signal });
  if (refused) return refused;
  const reply = simulate(prompt);
  return request.stream ? streamed(request, { reply, signal }) : whole(request, { reply, signal });
}

interface Answering {
  reply: SimulatedReply;
  signal: AbortSignal;
}

function streamed(request: UnderstoodRequest, { reply, signal }: Answering): Response {
  const events = play(request.events(reply), {
    directives: reply.directives,
    signal,
    failure: (sentCount) => request.failure(reply, sentCount),
  });
  // Bun takes an async iterable as a body and asks it for the next piece as the client reads.
  return new Response(events, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}

async function whole(request: UnderstoodRequest, { reply, signal }: Answering): Promise<Response> {
  const {
    token_delay_ms: tokenDelayMs,
    stall_after: stallAfter,
    cut_after: cutAfter,
  } = reply.directives;
  const tokenCount = reply.choices.reduce((sum, choice) => sum + choiceTokens(choice).length, 0);
  if (tokenDelayMs) await waitMs(tokenDelayMs * tokenCount, signal);
  if (stallAfter !== undefined) await clientGone(signal);
  const body = JSON.stringify(request.whole(reply));
  const headers = { "content-type": "application/json" };
  return new Response(cutAfter === undefined ? body : firstHalf(body), { headers });
}

/** The first half of a body, then a reset connection. */
async function* firstHalf(body: string): AsyncGenerator<string> {
  yield body.slice(0, body.length / 2);
  await cutConnection();
}
