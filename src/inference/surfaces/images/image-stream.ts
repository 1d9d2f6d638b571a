import type { GatewayError } from "../../../platform/kernel/errors.ts";
import { memberText } from "../../../platform/kernel/json/json-members.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import {
  inOneLine,
  malformedStream,
  reportedFault,
  unfinishedStream,
  type RelayOptions,
  type SseEvent,
  type StreamRelay,
} from "../../dialects/shared/passthrough.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { fieldsOf, listOf, type Fields } from "../read-fields.ts";
import { sumUsage } from "../whole-adapter.ts";
import {
  meteredPictures,
  withCallersUser,
  type MadePicture,
  type PictureMetering,
  type ReadPictures,
} from "./image-dialect.ts";
import type { ImageRequest } from "./image-request.ts";
import { readImageUsage, shownUsage } from "./image-usage.ts";

/** Returns the name that the events of an operation begin with. */
const prefixOf = ({ operation }: ImageRequest): string =>
  operation === "edits" ? "image_edit" : "image_generation";

const frame = (event: Fields): string =>
  `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;

/** Returns the event of a finished picture. */
const completedEvent = (
  request: ImageRequest,
  {
    picture,
    shown,
    usage,
    createdAtSeconds,
  }: {
    picture: MadePicture;
    shown: Fields;
    usage: Fields | undefined;
    createdAtSeconds: number | undefined;
  },
): Fields =>
  withoutUndefined<Fields>({
    type: `${prefixOf(request)}.completed`,
    b64_json: picture.base64,
    url: picture.base64 === undefined ? picture.url : undefined,
    created_at: createdAtSeconds,
    background: shown["background"],
    output_format: shown["output_format"] ?? request.outputFormat,
    quality: shown["quality"] ?? request.quality,
    size: shown["size"] ?? request.size,
    usage,
  });

/** Returns the events of a whole answer, for a client that asked for a stream. */
export function eventsOfPictures(
  request: ImageRequest,
  { pictures, shown, tokens, createdAtSeconds }: ReadPictures,
): string {
  const usage = tokens && shownUsage(tokens.usage, undefined);
  return pictures
    .map((picture, index) =>
      frame(
        completedEvent(request, {
          picture,
          shown,
          usage: index === pictures.length - 1 ? usage : undefined,
          createdAtSeconds,
        }),
      ),
    )
    .join("");
}

/** Returns the events of a rendered answer, of which the last shows the usage. */
export function wholeEvents({ request }: { request: ImageRequest }, rendered: Fields): string {
  const { data, usage, created, ...shown } = rendered;
  const list = listOf(data) ?? [];
  return list
    .map((entry, index) => {
      const { b64_json: base64, url } = fieldsOf(entry);
      const picture = withoutUndefined<MadePicture>({
        base64: typeof base64 === "string" ? base64 : undefined,
        url: typeof url === "string" ? url : undefined,
      });
      const isLast = index === list.length - 1;
      return frame(
        completedEvent(request, {
          picture,
          shown,
          usage: isLast ? fieldsOf(usage) : undefined,
          createdAtSeconds: typeof created === "number" ? created : undefined,
        }),
      );
    })
    .join("");
}

/**
 * Relays a stream of pictures in OpenAI's form. Partial pictures pass as they came; the last
 * finished one waits for the charge, which it shows.
 */
export class ImageRelay implements StreamRelay {
  ended = false;
  hasContent = false;
  outputCharacters = 0;
  readonly finishReason = null;
  readonly upstreamId = null;
  readonly pingFrame = ": ping\n\n";
  private readonly options: RelayOptions;
  private readonly request: ImageRequest;
  private readonly metering: PictureMetering;
  private readonly made: MeteredUsage[] = [];
  /** A finished picture that may be the last one. */
  private waiting: Fields | undefined;

  constructor(options: RelayOptions, metering: PictureMetering) {
    this.options = options;
    this.request = metering.request;
    this.metering = metering;
  }

  get finished(): boolean {
    return this.made.length >= this.request.count;
  }

  accept({ event, data }: SseEvent): string | Promise<string> {
    if (data === "[DONE]" || !data.startsWith("{")) return "";
    const type = event ?? JSON.parse(memberText(data, "type") ?? "null");
    if (typeof type !== "string") throw this.errorIn(data);
    if (type.endsWith("error")) throw this.errorIn(data);
    if (type.endsWith("partial_image")) {
      this.hasContent = true;
      return `${this.takeWaiting()}event: ${type}\ndata: ${inOneLine(data)}\n\n`;
    }
    if (!type.endsWith("completed")) return "";
    return this.complete(fieldsOf(JSON.parse(data)));
  }

  async finish(): Promise<string> {
    if (this.ended) return "";
    if (this.made.length === 0) throw unfinishedStream();
    return this.settleLast();
  }

  endAtCap(): Promise<string> {
    return this.finish();
  }

  fail({ code, message, param }: GatewayError): string {
    this.ended = true;
    const rest = this.takeWaiting();
    return (
      rest +
      frame({ type: "error", error: { message, type: "server_error", code, param: param ?? null } })
    );
  }

  metered(): MeteredUsage {
    const sum = sumUsage(this.made);
    const kind = this.made.at(-1)?.picture;
    if (sum === undefined || this.made.length === 0)
      return { usage: { outputImages: 0 }, estimated: true, clamped: false };
    return { ...sum, ...(kind !== undefined && { picture: kind }) };
  }

  private complete(event: Fields): string | Promise<string> {
    this.hasContent = true;
    const { b64_json: base64, size, quality, usage } = event;
    const text = (value: unknown) => (typeof value === "string" ? value : undefined);
    const picture = withoutUndefined<MadePicture>({
      base64: text(base64),
      url: text(event["url"]),
    });
    const tokens = readImageUsage(usage, { hasPictures: this.request.pictures.length > 0 });
    const kind = withoutUndefined<ReadPictures["kind"]>({
      size: text(size),
      quality: text(quality),
    });
    this.made.push(meteredPictures({ pictures: [picture], tokens, kind }, this.metering));
    const earlier = this.takeWaiting();
    this.waiting = event;
    if (!this.finished) return earlier;
    return this.settleLast().then((last) => earlier + last);
  }

  private takeWaiting(): string {
    const event = this.waiting;
    this.waiting = undefined;
    return event === undefined ? "" : frame(withCallersUser(event, this.request));
  }

  /** Charges the pictures, and returns the event of the last one with the charge. */
  private async settleLast(): Promise<string> {
    const { chargedNano } = await this.options.settle();
    const event = this.waiting;
    this.waiting = undefined;
    this.ended = true;
    if (event === undefined) return "";
    const { usage } = this.metered();
    return frame({
      ...withCallersUser(event, this.request),
      type: `${prefixOf(this.request)}.completed`,
      usage: { ...fieldsOf(event["usage"]), ...shownUsage(usage, usdFromNano(chargedNano)) },
    });
  }

  private errorIn(data: string): Error {
    try {
      const { error, message, code } = fieldsOf(JSON.parse(data));
      const details = fieldsOf(error);
      return reportedFault({ message, code, ...details });
    } catch {
      return malformedStream("an event of the stream is not valid JSON");
    }
  }
}
