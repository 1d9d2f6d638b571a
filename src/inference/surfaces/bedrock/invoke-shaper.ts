import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
} from "../../dialects/shared/wire-fields.ts";
import { type BedrockEvent, type BedrockShaper, exceptionOf } from "./converse-shaper.ts";

/** What the path says of a request; a member that it does not say is the body's own. */
export interface InvokedPlace {
  model?: string;
  stream?: boolean;
}

/**
 * The request of `InvokeModel` as one of Messages: the edits of its members, and the betas that
 * Messages has as a header.
 */
interface InvokedMessages {
  edits: ReadonlyMap<string, JsonValue | undefined>;
  betas: string | undefined;
}

/**
 * Reads what `POST /model/{id}/invoke` and Vertex's `rawPredict` say otherwise than Messages does:
 * the path names the model, and the body the version and the betas. Throws `GatewayError` for the
 * bodies of other vendors.
 */
export function invokedMessages(body: JsonObject, place: InvokedPlace): InvokedMessages {
  if (asString(body.anthropic_version) === undefined)
    throw badRequest(
      "anthropic_version",
      "is required: this path reads the form of Anthropic's Messages alone. Other models take it as well, and Converse.",
    );
  const betas = asArray(body.anthropic_beta)?.filter((beta) => typeof beta === "string") ?? [];
  return {
    edits: new Map<string, JsonValue | undefined>([
      ["anthropic_version", undefined],
      ["anthropic_beta", undefined],
      ...Object.entries(place),
    ]),
    betas: betas.length === 0 ? undefined : betas.join(","),
  };
}

/**
 * Turns the events of one Messages stream into those of `InvokeModelWithResponseStream`: each is a
 * chunk of bytes, and the last one has Amazon's own counts.
 */
export class InvokeShaper implements BedrockShaper {
  private usage: JsonObject = {};
  private firstByteMs: number | undefined;

  /** `latencyMs` returns the milliseconds since the request came. */
  constructor(private readonly latencyMs: () => number) {}

  events(event: JsonObject): BedrockEvent[] {
    if (event.type === "error") return [exceptionOf(event)];
    this.firstByteMs ??= this.latencyMs();
    const usage = asObject(event.usage) ?? asObject(asObject(event.message)?.usage);
    this.usage = { ...this.usage, ...usage };
    const said =
      event.type === "message_stop"
        ? { ...event, "amazon-bedrock-invocationMetrics": this.counts() }
        : event;
    const bytes = Buffer.from(JSON.stringify(said)).toString("base64");
    return [{ type: "chunk", isException: false, payload: { bytes } }];
  }

  private counts(): JsonObject {
    return {
      inputTokenCount: asNumber(this.usage.input_tokens) ?? 0,
      outputTokenCount: asNumber(this.usage.output_tokens) ?? 0,
      invocationLatency: this.latencyMs(),
      firstByteLatency: this.firstByteMs ?? 0,
    };
  }
}
