import { reconcileFinish, type Finish } from "../../canonical/finish-reason.ts";
import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { ItemPart, ResponseStart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { brand } from "../../../platform/lib/brand.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { gatewayFields } from "../gateway-fields.ts";
import { BlockSequence } from "./block-sequence.ts";
import { errorFrame } from "./encode-error.ts";
import { encodeUsage } from "./encode-usage.ts";
import { encodeFinish, withRefusal } from "./finish-fields.ts";
import { frame } from "./frame.ts";

/**
 * Canonical parts to the events of a Messages stream: `message_start`, the blocks one after another,
 * `message_delta` with the reason and the usage once both are known, `message_stop` with the gateway's
 * metadata. After an error nothing follows.
 */
export class MessagesStreamEncoder implements StreamEncoder {
  private readonly context: ResponseContext;
  private readonly blocks: BlockSequence;
  private usage: MeteredUsage | undefined;
  private finish: Finish | undefined;
  private refused = false;
  private started = false;
  private ended = false;

  constructor(context: ResponseContext = {}) {
    this.context = context;
    this.blocks = new BlockSequence({
      hidesThoughts: context.request?.reasoning?.exclude === true,
    });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    switch (part.type) {
      case "response-start":
        return this.start(part);
      case "usage":
        this.usage = part.usage;
        return [];
      case "response-end":
        return this.end(part.gateway);
      case "error":
        this.ended = true;
        return [errorFrame(part.error)];
      case "logprobs":
        return [];
      case "finish":
        if (part.choiceIndex === 0) this.finish = part.finish;
        return this.startIfNone();
      // Messages has one answer.
      default:
        return part.choiceIndex === 0 && this.finish === undefined ? this.add(part) : [];
    }
  }

  private add(part: ItemPart): string[] {
    this.refused ||= part.type === "refusal-delta" && part.refusal !== "";
    return this.started ? this.blocks.add(part) : [...this.startIfNone(), ...this.blocks.add(part)];
  }

  private start({ id, model }: Pick<ResponseStart, "id" | "model">): string[] {
    if (this.started) return [];
    this.started = true;
    return [
      frame({
        type: "message_start",
        message: {
          id: this.context.id ?? id,
          type: "message",
          role: "assistant",
          model: this.context.model ?? model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          // LangChain reads the input here and nowhere else.
          usage: { input_tokens: this.context.inputTokens ?? 0, output_tokens: 0 },
        },
        ...gatewayFields(this.context.gateway),
      }),
    ];
  }

  private startIfNone(): string[] {
    return this.started ? [] : this.start({ id: "", model: "" });
  }

  private end(gateway: GatewayFacts | undefined): string[] {
    const opened = this.startIfNone();
    const blocks = this.blocks.close();
    this.ended = true;
    const { metadata, ...told } = gateway ?? {};
    const finish = withRefusal(reconcileFinish(this.finish, this.blocks.hasCalls), this.refused);
    return [
      ...opened,
      ...blocks,
      frame({
        type: "message_delta",
        delta: encodeFinish(finish),
        usage: encodeUsage(this.usage ?? nothingReported, told),
        ...(this.context.gateway === undefined && gatewayFields(told)),
      }),
      frame({
        type: "message_stop",
        ...(metadata !== undefined && { [brand.metadataKey]: metadata }),
      }),
    ];
  }
}

/** Clients throw where there is no usage at all. */
const nothingReported = { usage: {}, estimated: true, clamped: false };
