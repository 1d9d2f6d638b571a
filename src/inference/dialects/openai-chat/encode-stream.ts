import type { GatewayFacts } from "../../canonical/gateway-facts.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ResponseStart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { ResponseContext, StreamEncoder } from "../dialect.ts";
import { encodeUsage } from "./encode-usage.ts";
import { errorFrame } from "./encode-error.ts";
import { gatewayFields } from "../gateway-fields.ts";
import { ChoiceEncoder } from "./stream-choice-encoder.ts";

const doneFrame = "data: [DONE]\n\n";

/**
 * Canonical parts to chunks: the role first on each choice, one finish for each, then usage and the
 * gateway's own facts on a chunk without choices, then `[DONE]`. After an error nothing follows.
 */
export class ChatStreamEncoder implements StreamEncoder {
  private readonly context: ResponseContext;
  private readonly choices = new Map<number, ChoiceEncoder>();
  private head = "";
  private usage: MeteredUsage | undefined;
  private ended = false;

  constructor(context: ResponseContext = {}) {
    this.context = context;
    this.setHead({ type: "response-start", id: "", model: "", createdAtSeconds: 0 });
  }

  encode(part: StreamPart): string[] {
    if (this.ended) return [];
    switch (part.type) {
      case "response-start":
        this.setHead(part);
        return [];
      case "usage":
        this.usage = part.usage;
        return [];
      case "response-end":
        return this.end(part.gateway);
      case "error":
        this.ended = true;
        return [errorFrame(part.error)];
      case "text-delta":
        return this.text(part.choiceIndex, part.text);
      default:
        return this.choice(part.choiceIndex).encode(part).map(this.entryFrame);
    }
  }

  /** Text is what streams are made of: where nothing waits to go along with it, it is put between texts that stay the same. */
  private text(choiceIndex: number, text: string): string[] {
    const choice = this.choice(choiceIndex);
    const plain = choice.plainText(text);
    return plain === undefined
      ? choice.text(text).map(this.entryFrame)
      : [`${this.head}[${plain}]}\n\n`];
  }

  private readonly entryFrame = (entry: JsonObject): string =>
    `${this.head}[${JSON.stringify(entry)}]}\n\n`;

  /** What every chunk begins with; the same id, time and model throughout. */
  private setHead(start: ResponseStart): void {
    const { id, model } = this.context;
    const { serviceTier, systemFingerprint } = start;
    const head: JsonObject = {
      id: id ?? start.id,
      object: "chat.completion.chunk",
      created: start.createdAtSeconds,
      model: model ?? start.model,
      ...(serviceTier !== undefined && { service_tier: serviceTier }),
      ...(systemFingerprint !== undefined && { system_fingerprint: systemFingerprint }),
    };
    this.head = `data: ${JSON.stringify(head).slice(0, -1)},"choices":`;
  }

  private choice(index: number): ChoiceEncoder {
    let choice = this.choices.get(index);
    if (choice === undefined)
      this.choices.set(index, (choice = new ChoiceEncoder(index, this.context)));
    return choice;
  }

  private end(gateway: GatewayFacts | undefined): string[] {
    this.ended = true;
    const finishes = [...this.choices.values()].flatMap((choice) => choice.finish());
    const frames = finishes.map(this.entryFrame);
    const members = {
      ...(this.usage && { usage: encodeUsage(this.usage, gateway) }),
      ...gatewayFields(gateway),
    };
    if (Object.keys(members).length > 0)
      frames.push(`${this.head}[],${JSON.stringify(members).slice(1)}\n\n`);
    return [...frames, doneFrame];
  }
}
