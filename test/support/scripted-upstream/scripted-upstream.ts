import { anthropicMessagesWire } from "../upstream/anthropic-messages-wire.ts";
import { type FaultUpstream, startFaultUpstream } from "../upstream/fault-upstream.ts";
import { googleGenerateWire } from "../upstream/google-generate-wire.ts";
import { openaiChatWire } from "../upstream/openai-chat-wire.ts";
import { openaiResponsesWire } from "../upstream/openai-responses-wire.ts";
import type { RecordedRequest } from "../upstream/recorded-request.ts";
import { json, type Script, sse, stream } from "../upstream/steps.ts";
import type { ScriptSource } from "../upstream/upstream-connection.ts";
import type { UpstreamWire } from "../upstream/upstream-wire.ts";
import { anthropicMessagesAnswer } from "./anthropic-messages-answer.ts";
import { googleGenerateAnswer } from "./google-generate-answer.ts";
import { openaiChatAnswer } from "./openai-chat-answer.ts";
import { openaiResponsesAnswer } from "./openai-responses-answer.ts";
import type { AnswerWriter, ScriptedAnswer } from "./scripted-answer.ts";

/** The answer writer, the faults and the paths of each dialect. */
const dialects = {
  "openai-chat": { writer: openaiChatAnswer, wire: openaiChatWire, path: /\/chat\/completions$/ },
  "anthropic-messages": {
    writer: anthropicMessagesAnswer,
    wire: anthropicMessagesWire,
    path: /\/messages(\?|$)/,
  },
  "openai-responses": {
    writer: openaiResponsesAnswer,
    wire: openaiResponsesWire,
    path: /\/responses$/,
  },
  "google-generate": {
    writer: googleGenerateAnswer,
    wire: googleGenerateWire,
    path: /:(?:streamG|g)enerateContent(\?|$)/,
  },
} as const satisfies Record<string, { writer: AnswerWriter; wire: UpstreamWire; path: RegExp }>;

/** A dialect that the scripted upstream speaks. */
export type ScriptedDialect = keyof typeof dialects;

/** Returns the parts of a good answer in a dialect, and its failures. */
export const wireOf = (dialect: ScriptedDialect): UpstreamWire => dialects[dialect].wire;

/** Returns the dialect of a request, by its path, which differs between vendors. */
function dialectOf({ path }: RecordedRequest): ScriptedDialect {
  const names = Object.keys(dialects) as ScriptedDialect[];
  const found = names.find((name) => dialects[name].path.test(path));
  if (found === undefined) throw new Error(`no dialect has the path ${path}`);
  return found;
}

/**
 * An upstream on one port that gives the same answer in whichever of the four dialects it is asked.
 */
export interface ScriptedUpstream extends Omit<FaultUpstream, "script" | "enqueue"> {
  /** Queues answers for the next requests, one each, whole or streamed as each request asks. */
  say(...answers: ScriptedAnswer[]): void;
  /** Queues scripts for the next requests, byte by byte. */
  enqueue(...scripts: Script[]): void;
  /** Forgets the queued answers that no request has taken. */
  forget(): void;
}

/** Returns the script of an answer, whole or streamed as the request asks. */
export function scriptOf(request: RecordedRequest, answer: ScriptedAnswer): Script {
  const dialect = dialectOf(request);
  const writer: AnswerWriter = dialects[dialect].writer;
  if (!asksForStream(request)) return json(writer.whole(answer));
  return stream(writer.events(answer).map((event) => sse(event, eventName(dialect, event))));
}

/** Returns an event's name; chat and Gemini do not name events. */
function eventName(dialect: ScriptedDialect, event: unknown): { event?: string } {
  if (dialect === "openai-chat" || dialect === "google-generate") return {};
  return { event: String(Reflect.get(Object(event), "type")) };
}

function asksForStream(request: RecordedRequest): boolean {
  if (request.path.includes(":streamGenerateContent")) return true;
  return Reflect.get(Object(request.json()), "stream") === true;
}

/** Starts a scripted upstream; a request for which nothing is queued gets a short text. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const upstream = await startFaultUpstream();
  const queued: ScriptSource[] = [];
  upstream.script((request) => {
    const next = queued.shift();
    return next ? next(request) : scriptOf(request, { text: ["Nothing is scripted."] });
  });
  return Object.assign(upstream, {
    say: (...answers: ScriptedAnswer[]) =>
      void queued.push(
        ...answers.map(
          (answer): ScriptSource =>
            (request) =>
              scriptOf(request, answer),
        ),
      ),
    enqueue: (...scripts: Script[]) =>
      void queued.push(
        ...scripts.map(
          (script): ScriptSource =>
            () =>
              script,
        ),
      ),
    forget: () => void queued.splice(0),
  });
}
