import { reconcileFinish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ErrorPart, StreamPart } from "../../canonical/stream-part.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import type { DecodeContext, StreamDecoder } from "../dialect.ts";
import { readOpenaiUsage } from "../read-openai-usage.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { cutStream, malformedEvent, parseEventObject, trimmed } from "../stream-failures.ts";
import { decodeFinish } from "./finish-fields.ts";
import { readReportedError } from "./read-error.ts";
import { OutputStream } from "./stream-output.ts";

/**
 * Events of a Responses stream to canonical parts. What only the closing event of a part, of an item or
 * of the response tells is told then, and once. A stream that ends without its terminal event is cut.
 */
export class ResponsesStreamDecoder implements StreamDecoder {
  latestUsage: MeteredUsage | undefined;
  private readonly output: OutputStream;
  private responseId = "";
  private started = false;
  private ended = false;

  constructor(context: DecodeContext = {}) {
    this.output = new OutputStream({ context, responseId: () => this.responseId });
  }

  decode(event: { event?: string; data: string }): StreamPart[] {
    if (this.ended) return [];
    const data = trimmed(event.data);
    // Comments, keep-alives and terminators of other dialects that came as data.
    if (!data.startsWith("{"))
      return event.event === "error" ? this.fail(reported({ message: data })) : [];
    const fields = parseEventObject(data);
    if (fields === undefined) return this.fail(malformedEvent);
    return this.read(asString(fields.type) ?? event.event ?? "", fields);
  }

  end(): StreamPart[] {
    return this.ended ? [] : this.fail(cutStream);
  }

  private read(type: string, fields: JsonObject): StreamPart[] {
    const response = asObject(fields.response);
    switch (type) {
      case "response.completed":
      case "response.incomplete":
        return this.finish(type, response ?? {});
      case "response.failed":
      case "response.cancelled":
        return this.fail(reported(response ?? fields), response);
      case "error":
        return this.fail(reported(fields));
      case "response.output_item.added":
        return this.begun(this.output.added(indexOf(fields), asObject(fields.item) ?? {}));
      case "response.output_item.done":
        return this.begun(this.output.done(indexOf(fields), asObject(fields.item) ?? {}));
      default:
        // A server of another dialect's habits: its error has no type.
        if (type === "" && asObject(fields.error) !== undefined) return this.fail(reported(fields));
        if (response !== undefined) return this.start(response);
        return this.begun(this.output.read(type, fields));
    }
  }

  /** Parts of items, after the start of the answer where the upstream left it out. */
  private begun(parts: StreamPart[]): StreamPart[] {
    return this.started || parts.length === 0 ? parts : [...this.start({}), ...parts];
  }

  private start(response: JsonObject): StreamPart[] {
    this.noteUsage(response);
    if (this.started) return [];
    this.started = true;
    this.responseId = asString(response.id) ?? "";
    const serviceTier = asString(response.service_tier);
    return [
      {
        type: "response-start",
        id: this.responseId,
        model: asString(response.model) ?? "",
        createdAtSeconds: asNumber(response.created_at) ?? 0,
        ...(serviceTier !== undefined && { serviceTier }),
      },
    ];
  }

  private finish(type: string, response: JsonObject): StreamPart[] {
    const start = this.start(response);
    const items = (asArray(response.output) ?? []).flatMap((item, index) => {
      const fields = asObject(item);
      return fields === undefined ? [] : this.output.told(index, fields);
    });
    const rest = this.output.close();
    this.ended = true;
    const status = type === "response.completed" ? "completed" : "incomplete";
    const finish = reconcileFinish(decodeFinish({ ...response, status }), this.output.hasCalls);
    return [
      ...start,
      ...items,
      ...rest,
      { type: "finish", choiceIndex: 0, finish },
      ...this.usageParts(),
      { type: "response-end" },
    ];
  }

  private fail(error: ErrorPart, response: JsonObject = {}): StreamPart[] {
    this.noteUsage(response);
    this.ended = true;
    return [...this.usageParts(), error];
  }

  private noteUsage({ usage }: JsonObject): void {
    if (usage !== undefined && usage !== null)
      this.latestUsage = readOpenaiUsage(usage) ?? this.latestUsage;
  }

  private usageParts(): StreamPart[] {
    return this.latestUsage === undefined ? [] : [{ type: "usage", usage: this.latestUsage }];
  }
}

const indexOf = (fields: JsonObject): number | undefined => asNumber(fields.output_index);

const reported = (fields: JsonObject): ErrorPart => ({
  type: "error",
  error: readReportedError(fields),
  fault: "reported",
});
