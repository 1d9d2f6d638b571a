import { reconcileFinish, type FinishReason } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { coveringDelivered, estimateUsage, type MeteredUsage } from "../../canonical/usage.ts";
import { decodeFinish } from "../../dialects/openai-responses/finish-fields.ts";
import { readOpenaiUsage } from "../../dialects/read-openai-usage.ts";
import { boundUsage } from "../bound-usage.ts";

/** A response object as far as it is read. */
export interface ResponseFields {
  id?: unknown;
  status?: unknown;
  output?: unknown;
  usage?: unknown;
  incomplete_details?: { reason?: unknown } | null;
  error?: unknown;
}

/** An output item as far as it is read. */
export interface ItemFields {
  type?: unknown;
  content?: unknown;
  summary?: unknown;
  arguments?: unknown;
  input?: unknown;
  name?: unknown;
  encrypted_content?: unknown;
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

interface TextFields {
  text?: unknown;
  refusal?: unknown;
}

const partsLength = (value: unknown): number =>
  Array.isArray(value)
    ? value.reduce<number>(
        (sum, part: TextFields | null) => sum + lengthOf(part?.text) + lengthOf(part?.refusal),
        0,
      )
    : 0;

/** Whether an item is a call that the caller runs. */
export const isCall = (item: ItemFields | null | undefined): item is ItemFields =>
  item?.type === "function_call" || item?.type === "custom_tool_call";

/** How much one item says. A tool that the provider ran itself says something in any case. */
export function itemLength(item: ItemFields): { visible: number; thought: number } {
  switch (item.type) {
    case "message":
      return { visible: partsLength(item.content), thought: 0 };
    case "reasoning": {
      const sealed = lengthOf(item.encrypted_content) > 0 ? 1 : 0;
      return {
        visible: 0,
        thought: partsLength(item.summary) + partsLength(item.content) + sealed,
      };
    }
    case "function_call":
    case "custom_tool_call":
      return {
        visible: 1 + lengthOf(item.name) + lengthOf(item.arguments) + lengthOf(item.input),
        thought: 0,
      };
    default:
      return { visible: 1, thought: 0 };
  }
}

/** Counts what a Responses answer says, for estimates where nothing is reported and to tell an answer from silence. */
export class ResponseMeter {
  visible = 0;
  thought = 0;
  /** How the answer ended; Responses has no words for it but a status. */
  finishReason: FinishReason | null = null;
  usage: MeteredUsage | undefined;
  private hasCalls = false;

  /** A text that was added to the item that it belongs to. */
  addDelta(type: string, delta: unknown): void {
    if (type.startsWith("response.reasoning")) this.thought += lengthOf(delta);
    else this.visible += lengthOf(delta);
  }

  addItem(item: ItemFields): void {
    this.hasCalls ||= isCall(item);
    const { visible, thought } = itemLength(item);
    this.visible += visible;
    this.thought += thought;
  }

  /** A response object, whole or on its way. */
  addResponse(response: ResponseFields): void {
    const { usage } = response;
    if (usage !== undefined && usage !== null) this.usage = readOpenaiUsage(usage) ?? this.usage;
    const finish = decodeFinish(response as JsonObject);
    if (finish !== undefined) this.finishReason = reconcileFinish(finish, this.hasCalls).reason;
  }

  get outputCharacters(): number {
    return this.visible + this.thought;
  }

  /** There is content, or an end without any that still tells the client something. */
  get isAcceptable(): boolean {
    return this.outputCharacters > 0 || this.endTells;
  }

  /** The same of a whole answer, of which thoughts alone are no content. */
  get isAnswer(): boolean {
    return this.visible > 0 || this.endTells;
  }

  private get endTells(): boolean {
    const { finishReason } = this;
    return finishReason !== null && finishReason !== "stop" && finishReason !== "tool_calls";
  }

  /** The provider's usage as far as it can be true, or an estimate from what was said. */
  metered({
    inputTokens,
    windowTokens,
  }: {
    inputTokens: number;
    windowTokens: number;
  }): MeteredUsage {
    if (this.usage !== undefined) {
      const isInterim = this.finishReason === null;
      return boundUsage(
        isInterim ? coveringDelivered(this.usage, this.outputCharacters) : this.usage,
        windowTokens,
      );
    }
    return estimateUsage({
      inputCharacters: inputTokens * 4,
      outputCharacters: this.outputCharacters,
    });
  }
}
