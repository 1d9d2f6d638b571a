import type { GatewayError } from "../../../platform/kernel/errors.ts";
import { memberText, fieldsOf } from "../../../platform/kernel/json/json-members.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import { inOneLine, withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import {
  malformedStream,
  reportedFault,
  unfinishedStream,
} from "../../dialects/shared/stream/stream-fault.ts";
import type {
  RelayOptions,
  SseEvent,
  StreamRelay,
} from "../../dialects/shared/stream/stream-relay.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { sumUsage } from "../whole-adapter.ts";
import {
  meteredPictures,
  withCallersUser,
  type MadePicture,
  type PictureMetering,
  type ReadPictures,
} from "./image-dialect.ts";
import type { ImageRequest } from "./image-request.ts";
import { typeOfBase64 } from "./picture-file.ts";
import { openrouterUsage, readImageUsage, shownUsage } from "./image-usage.ts";

/** Returns the name that the events of an operation begin with. */
const prefixOf = ({ operation, form }: ImageRequest): string =>
  operation === "edits" && form === "openai" ? "image_edit" : "image_generation";

const frame = (event: Fields): string =>
  `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;

/** Returns the format of a picture by its media type. */
const formatOf = ({ type = "image/png" }: MadePicture): string => type.replace(/^image\//, "");

/** Returns the event of a finished picture, with what its request left open where nothing tells it. */
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
    createdAtSeconds: number;
  },
): Fields =>
  withoutUndefined<Fields>({
    type: `${prefixOf(request)}.completed`,
    b64_json: picture.base64,
    url: picture.base64 === undefined ? picture.url : undefined,
    created_at: createdAtSeconds,
    background: shown["background"] ?? request.fields["background"] ?? "auto",
    output_format: shown["output_format"] ?? request.outputFormat ?? formatOf(picture),
    quality: shown["quality"] ?? request.quality ?? "auto",
    size: shown["size"] ?? request.size ?? "auto",
    usage,
  });

/**
 * Returns the event of a finished picture as OpenRouter's clients read it. Source: npm
 * @openrouter/sdk 1.3.19, `ImageGenCompletedEvent`.
 */
function forOpenrouter({ b64_json, url, created_at }: Fields, usage: Fields | undefined): Fields {
  return withoutUndefined<Fields>({
    type: "image_generation.completed",
    b64_json,
    url,
    created: created_at,
    media_type: typeof b64_json === "string" ? typeOfBase64(b64_json) : undefined,
    usage,
  });
}

/** Returns the events of a whole answer, for a client that asked for a stream. */
export function eventsOfPictures(
  request: ImageRequest,
  {
    pictures,
    shown,
    tokens,
    createdAtSeconds,
  }: Omit<ReadPictures, "createdAtSeconds"> & { createdAtSeconds: number },
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
        type: typeof base64 === "string" ? typeOfBase64(base64) : undefined,
      });
      const lastUsage = index === list.length - 1 ? fieldsOf(usage) : undefined;
      const createdAtSeconds = Number(created);
      const event = completedEvent(request, { picture, shown, usage: lastUsage, createdAtSeconds });
      return frame(request.form === "openrouter" ? forOpenrouter(event, lastUsage) : event);
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
  private readonly request: ImageRequest;
  private readonly made: MeteredUsage[] = [];
  /** A finished picture that may be the last one. */
  private waiting: Fields | undefined;
  private hasLeft = false;
  /** Whether drafts have come of a picture that is not finished. */
  private isDrafting = false;
  /** Whether the provider has said that it finishes no picture. */
  private hasFailed = false;

  constructor(
    private readonly options: RelayOptions,
    private readonly metering: PictureMetering & { nowSeconds(): number },
  ) {
    this.request = metering.request;
  }

  get finished(): boolean {
    return this.made.length >= this.request.count;
  }

  accept({ event, data }: SseEvent): string | Promise<string> {
    if (data === "[DONE]" || !data.startsWith("{")) return "";
    const type = event ?? JSON.parse(memberText(data, "type") ?? "null");
    if (typeof type !== "string") throw this.errorIn(data);
    if (type.endsWith("error")) {
      this.hasFailed = true;
      throw this.errorIn(data);
    }
    if (type.endsWith("partial_image")) {
      this.hasContent = true;
      this.isDrafting = true;
      return this.takeWaiting() + this.partial(type, data);
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
    const drafts = this.meteredDrafts();
    const last = this.made.at(-1) ?? drafts;
    const sum = sumUsage(drafts === undefined ? this.made : [...this.made, drafts]);
    if (sum === undefined || last === undefined)
      return { usage: { outputImages: 0 }, estimated: true, clamped: false };
    return { ...sum, ...(last.picture !== undefined && { picture: last.picture }) };
  }

  /** Notes that the client reads no more. */
  leave(): void {
    this.hasLeft = true;
  }

  /**
   * Returns what a picture of which drafts have come is charged with, beside those that are finished. A
   * client that left has had the provider make it, unless the provider reports an error meanwhile.
   */
  private meteredDrafts(): MeteredUsage | undefined {
    const { request, byPiece } = this.metering;
    if (!this.hasLeft || !this.isDrafting || this.hasFailed) return undefined;
    const draft = { pictures: [{}], tokens: undefined, kind: {} };
    return meteredPictures(draft, { request, byPiece });
  }

  private complete(event: Fields): string | Promise<string> {
    this.hasContent = true;
    this.isDrafting = false;
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

  /** Returns the event of a partial picture: as it came where its client knows that name. */
  private partial(type: string, data: string): string {
    const name = `${prefixOf(this.request)}.partial_image`;
    return type === name
      ? `event: ${type}\ndata: ${inOneLine(data)}\n\n`
      : frame({ ...fieldsOf(JSON.parse(data)), type: name });
  }

  /** Returns the event of a finished picture in its client's form, with the usage of the last one. */
  private finishedEvent(event: Fields, charged?: { usage: Usage; costUsd: number }): Fields {
    if (this.request.form === "openrouter")
      return forOpenrouter(
        { created_at: this.metering.nowSeconds(), ...event },
        charged && openrouterUsage(charged.usage, charged.costUsd),
      );
    return {
      ...withCallersUser(event, this.request),
      type: `${prefixOf(this.request)}.completed`,
      ...(charged && {
        usage: { ...fieldsOf(event["usage"]), ...shownUsage(charged.usage, charged.costUsd) },
      }),
    };
  }

  private takeWaiting(): string {
    const event = this.waiting;
    this.waiting = undefined;
    return event === undefined ? "" : frame(this.finishedEvent(event));
  }

  /** Charges the pictures, and returns the event of the last one with the charge. */
  private async settleLast(): Promise<string> {
    const { chargedNano } = await this.options.settle();
    const event = this.waiting;
    this.waiting = undefined;
    this.ended = true;
    if (event === undefined) return "";
    const { usage } = this.metered();
    return frame(this.finishedEvent(event, { usage, costUsd: usdFromNano(chargedNano) }));
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
