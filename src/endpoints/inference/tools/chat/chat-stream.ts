import { RoundStream, type StreamedRounds } from "../round-stream.ts";
import { brand } from "../../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { openaiChat } from "../../../../inference/dialects/openai-chat/index.ts";
import type { DialogueRounds, Wire } from "../dialogue-rounds.ts";
import { roundGap, type ChatTurn } from "./chat-turn.ts";

interface StreamedCall {
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

/** The parts of a message that a stream has sent. */
class StreamedMessage {
  private readonly message: Record<string, unknown> = { role: "assistant", content: null };
  /** The calls by their index, which may be any number where a provider wrote it. */
  private readonly calls = new Map<number, StreamedCall>();
  finish: unknown = null;

  add(delta: Wire): void {
    for (const [name, value] of Object.entries(delta)) {
      const before = this.message[name];
      if (name === "role" || name === "tool_calls") continue;
      if (typeof value === "string")
        this.message[name] = (typeof before === "string" ? before : "") + value;
      else if (Array.isArray(value))
        this.message[name] = [...(Array.isArray(before) ? before : []), ...value];
      else if (value !== null) this.message[name] = value;
    }
  }

  addCall({ index, id, function: called }: Wire): { name: string; begins: boolean } {
    const place = typeof index === "number" ? index : 0;
    const known = this.calls.get(place);
    const call = known ?? { id: "", type: "function", function: { name: "", arguments: "" } };
    if (known === undefined) this.calls.set(place, call);
    const part = Object(called) as { name?: unknown; arguments?: unknown };
    if (typeof id === "string") call.id = id;
    if (typeof part.name === "string") call.function.name += part.name;
    if (typeof part.arguments === "string") call.function.arguments += part.arguments;
    return { name: call.function.name, begins: known === undefined };
  }

  get whole(): Wire {
    const calls = [...this.calls].sort(([one], [other]) => one - other).map(([, call]) => call);
    return calls.length === 0 ? this.message : { ...this.message, tool_calls: calls };
  }
}

const frameOf = (chunk: Wire): string => `data: ${JSON.stringify(chunk)}\n\n`;
const doneFrame = "data: [DONE]\n\n";

/** The chunks of such an answer, round by round, as one stream. */
export class ChatStream extends RoundStream {
  private readonly turn: ChatTurn;
  private readonly rounds: DialogueRounds;
  private hasText = false;
  private clientCalls = 0;
  /** The indexes of calls that are left to the client, by their index in the present round. */
  private indexes = new Map<unknown, number>();

  constructor({
    turn,
    rounds,
    ...streams
  }: StreamedRounds & { turn: ChatTurn; rounds: DialogueRounds }) {
    super(streams);
    this.turn = turn;
    this.rounds = rounds;
  }

  protected async *run(): AsyncGenerator<string, void> {
    for (;;) {
      const message = new StreamedMessage();
      const tail: { last?: Wire; end?: Wire } = {};
      yield* this.relay(message, tail);
      if (this.isCancelled || tail.last === undefined) return;
      const ended = await this.turn.take(message.whole, message.finish);
      if (this.isCancelled) return;
      if (ended !== undefined) {
        yield this.annotations(tail.last, ended.message) +
          this.ending({ last: tail.last, end: tail.end }, ended.finish);
        return;
      }
      this.indexes = new Map();
      try {
        await this.openNext();
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const { traceId } = this.rounds.options.call;
        yield openaiChat.encodeStreamError(error, { traceId }).join("");
        return;
      }
    }
  }

  /** Passes on the chunks of a round, and keeps its last ones back. */
  private async *relay(
    message: StreamedMessage,
    tail: { last?: Wire; end?: Wire },
  ): AsyncGenerator<string, void> {
    let isNew = !this.rounds.isFirst && this.hasText;
    for (;;) {
      const frames = await this.current.next();
      if (frames === undefined) return;
      let text = "";
      for (const frame of frames.split("\n\n")) {
        if (frame === "" || frame === "data: [DONE]") continue;
        if (!frame.startsWith("data: {")) {
          text += `${frame}\n\n`;
          continue;
        }
        const chunk = JSON.parse(frame.slice("data: ".length)) as Wire;
        const [choice] = (chunk["choices"] ?? []) as Wire[];
        if (choice === undefined) {
          if (chunk["error"] !== undefined) text += `${frame}\n\n`;
          else {
            tail.end = chunk;
            this.rounds.usage.addRound(chunk["usage"]);
          }
          continue;
        }
        const shown = this.shownDelta(choice, message);
        if (choice["finish_reason"] !== null && choice["finish_reason"] !== undefined) {
          message.finish = choice["finish_reason"];
          tail.last = chunk;
        }
        if (shown === undefined) continue;
        if (isNew && typeof shown["content"] === "string" && shown["content"] !== "") {
          isNew = false;
          shown["content"] = roundGap + shown["content"];
        }
        text += frameOf({ ...chunk, choices: [{ ...choice, delta: shown, finish_reason: null }] });
      }
      if (text !== "") yield text;
    }
  }

  /** Returns the part of a delta that the client sees; undefined where it is nothing. */
  private shownDelta(choice: Wire, message: StreamedMessage): Record<string, unknown> | undefined {
    const { tool_calls: calls, ...delta } = Object(choice["delta"]) as Wire;
    message.add(delta);
    if (typeof delta["content"] === "string" && delta["content"] !== "") this.hasText = true;
    const shown: Record<string, unknown> = { ...delta };
    if (!this.rounds.isFirst) delete shown["role"];
    if (Array.isArray(calls)) {
      const own = (calls as Wire[]).flatMap((call) => this.shownCall(call, message));
      if (own.length > 0) shown["tool_calls"] = own;
    }
    const values = Object.values(shown).filter((value) => value !== null && value !== "");
    return values.length === 0 ? undefined : shown;
  }

  private shownCall(call: Wire, message: StreamedMessage): Wire[] {
    const { name, begins } = message.addCall(call);
    if (begins && this.turn.isClients(name)) {
      this.indexes.set(call["index"], this.clientCalls);
      this.clientCalls += 1;
    }
    const index = this.indexes.get(call["index"]);
    return index === undefined ? [] : [{ ...call, index }];
  }

  private annotations(last: Wire, { annotations }: Wire): string {
    if (annotations === undefined) return "";
    const [choice] = last["choices"] as Wire[];
    return frameOf({
      ...last,
      choices: [{ ...choice, delta: { annotations }, finish_reason: null }],
    });
  }

  private ending({ last, end }: { last: Wire; end?: Wire | undefined }, finish: unknown): string {
    const [choice] = last["choices"] as Wire[];
    const closing = frameOf({
      ...last,
      choices: [{ ...choice, delta: {}, finish_reason: finish }],
    });
    if (end === undefined) return closing + doneFrame;
    const { usage, ...rest } = end;
    return (
      closing +
      frameOf({
        ...rest,
        ...(usage !== undefined && { usage: this.rounds.usage.total ?? usage }),
        [brand.metadataKey]: this.turn.metadata(end[brand.metadataKey]),
      }) +
      doneFrame
    );
  }
}
