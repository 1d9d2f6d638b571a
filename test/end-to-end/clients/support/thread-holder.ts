import { anthropicMessagesAnswer } from "../../../support/scripted-upstream/anthropic-messages-answer.ts";
import type { ScriptedAnswer } from "../../../support/scripted-upstream/scripted-answer.ts";
import {
  type FaultUpstream,
  startFaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import type { RecordedRequest } from "../../../support/upstream/recorded-request.ts";
import { json, type Script, sse, stream } from "../../../support/upstream/steps.ts";

type Fields = Record<string, unknown>;

/** A Messages upstream that holds conversations, and refuses to continue those that it does not. */
export interface ThreadHolder extends FaultUpstream {
  /** Queues the answers of the next turns. */
  say(...answers: ScriptedAnswer[]): void;
  /** The messages of each turn as the model saw them, those that the server held included. */
  readonly turns: unknown[][];
  /** Forgets every conversation. */
  lose(): void;
}

/** Starts an upstream that holds conversations as Anthropic does. */
export async function startThreadHolder(): Promise<ThreadHolder> {
  const upstream = await startFaultUpstream();
  const queued: ScriptedAnswer[] = [];
  const held = new Map<string, unknown[]>();
  const turns: unknown[][] = [];
  upstream.script((request): Script => {
    const { thread, messages, ...body } = request.json() as Fields & { messages: unknown[] };
    const { type, previous_message_id: previous } = Object(thread) as Fields;
    const history = type === "continue" ? held.get(String(previous)) : [];
    if (history === undefined) return notFound();
    const turn = [...history, ...messages];
    turns.push(turn);
    const answer = queued.shift() ?? { text: ["Nothing is scripted."] };
    const id = `msg_native_${turns.length}`;
    const whole: Fields = { ...(anthropicMessagesAnswer.whole(answer) as Fields), id };
    if (thread !== undefined)
      held.set(id, [...turn, { role: "assistant", content: whole["content"] }]);
    return body["stream"] === true ? streamed(answer, id) : json(whole);
  });
  return Object.assign(upstream, {
    say: (...answers: ScriptedAnswer[]) => void queued.push(...answers),
    turns,
    lose: () => held.clear(),
  });
}

/** Returns Anthropic's refusal to continue what it does not hold (@anthropic-ai/sdk 1.14). */
const notFound = (): Script =>
  json(
    {
      type: "error",
      error: {
        type: "not_found_error",
        message: "No thread has this message.",
        details: { error_code: "thread_not_found" },
      },
      request_id: "req_1",
    },
    { status: 404 },
  );

function streamed(answer: ScriptedAnswer, id: string): Script {
  const events = anthropicMessagesAnswer.events(answer) as Fields[];
  return stream(
    events.map((event) => {
      const shown =
        event["type"] === "message_start"
          ? { ...event, message: { ...(Object(event["message"]) as Fields), id } }
          : event;
      return sse(shown, { event: String(event["type"]) });
    }),
  );
}

/** Returns the body of a recorded request. */
export const bodyOf = (request: RecordedRequest | undefined): Fields =>
  Object(request?.json()) as Fields;
