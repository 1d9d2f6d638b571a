import type { PictureKind } from "../../../platform/kernel/usage.ts";
import type { Loss } from "../../canonical/request.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import type { AdaptedRoute } from "../../pipeline/inference-call.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { encodeJson, type MediaBody } from "../media/uploads.ts";
import type { Fields } from "../read-fields.ts";
import {
  expectedUsage,
  type AuthoredTokens,
  type CountedTokens,
  withAuthored,
} from "./image-usage.ts";
import { pixelsOf, ratioOf, type ImageRequest } from "./image-request.ts";

/** Returns a body of JSON, whose files are read while they are sent. */
export const jsonBody = (value: object): MediaBody => ({
  parts: encodeJson(value),
  type: "application/json",
});

/** A request for pictures as one provider is sent it. */
export interface ImageExchange {
  /** The requests that are sent; several where the provider makes fewer pictures at once. */
  bodies: readonly MediaBody[];
  /** The path below the provider's address. */
  path: string;
  losses: readonly Loss[];
  /** Reads an answer; undefined where it is none of the dialect's. */
  read(body: object): ReadPictures | undefined;
}

/** The wire format of one vendor's pictures. */
export interface ImageDialect {
  /** Encodes a request. Throws `GatewayError` for what the provider cannot be asked for. */
  encode(request: ImageRequest, route: AdaptedRoute): ImageExchange;
}

/** A picture of an answer: base64, or the address that its provider gave it. */
export interface MadePicture {
  base64?: string;
  url?: string;
  /** Such as `image/png`; absent where the provider names none. */
  type?: string;
  revisedPrompt?: string;
}

/** The pictures of one answer. */
export interface ReadPictures {
  pictures: readonly MadePicture[];
  createdAtSeconds?: number;
  tokens: CountedTokens | undefined;
  /** The tokens of a model that wrote the picture as a drawing; absent where there is none. */
  authored?: AuthoredTokens;
  kind: PictureKind;
  /** Members of the answer that its client is shown as they are. */
  shown: Fields;
  /** Why there are fewer pictures than were asked for; absent where there are all. */
  withheld?: string;
}

/** How the pictures of a request are metered at a route. */
export interface PictureMetering {
  request: ImageRequest;
  /** Whether the route has a price of each picture, so that no tokens are estimated. */
  byPiece: boolean;
}

/**
 * Returns the usage that pictures are charged by: the provider's tokens, or where it counted none
 * an estimate of them, and always the number of pictures.
 */
export function meteredPictures(
  read: Pick<ReadPictures, "pictures" | "tokens" | "kind" | "authored">,
  metering: PictureMetering,
): MeteredUsage {
  const metered = ofPictures(read, metering);
  const { authored } = read;
  return authored === undefined
    ? metered
    : { ...metered, usage: withAuthored(metered.usage, authored) };
}

function ofPictures(
  { pictures, tokens, kind }: Pick<ReadPictures, "pictures" | "tokens" | "kind">,
  { request, byPiece }: PictureMetering,
): MeteredUsage {
  const picture = withoutUndefined<PictureKind>({
    size: kind.size ?? (request.size === "auto" ? undefined : request.size?.toLowerCase()),
    quality: kind.quality ?? (request.quality === "auto" ? undefined : request.quality),
  });
  const outputImages = pictures.length;
  if (tokens !== undefined)
    return {
      usage: { ...tokens.usage, outputImages },
      estimated: false,
      clamped: tokens.clamped,
      picture,
      ...(tokens.costUsd !== undefined && { providerCostUsd: tokens.costUsd }),
    };
  const { outputImageTokens, ...expected } = expectedUsage(request, outputImages);
  return {
    usage: byPiece
      ? { ...expected, outputImages }
      : { ...expected, outputImages, outputImageTokens },
    estimated: true,
    clamped: false,
    picture,
  } as MeteredUsage;
}

/**
 * Returns members of an answer in which the end user has the caller's own id, where the provider
 * was sent another one.
 */
export function withCallersUser(members: Fields, { fields }: Pick<ImageRequest, "fields">): Fields {
  if (typeof members["safety_identifier"] !== "string") return members;
  const own = fields["safety_identifier"] ?? fields["user"] ?? null;
  return { ...members, safety_identifier: own };
}

const ratios = [
  "1:1",
  "16:9",
  "9:16",
  "4:3",
  "3:4",
  "3:2",
  "2:3",
  "2:1",
  "1:2",
  "21:9",
  "4:5",
  "5:4",
] as const;

/** Returns the ratio of a list that is nearest to a number. */
function nearestTo(wanted: number, known: readonly string[]): string {
  const distance = (ratio: string): number => Math.abs(Math.log((ratioOf(ratio) ?? 1e9) / wanted));
  return known.reduce((best, ratio) => (distance(ratio) < distance(best) ? ratio : best), "1:1");
}

/** Returns the ratio of a list that is nearest to a size; undefined where it names no pixels. */
export function nearestRatio(
  size: string | undefined,
  known: readonly string[] = ratios,
): string | undefined {
  const [width, height] = pixelsOf(size) ?? [];
  return width === undefined || height === undefined ? undefined : nearestTo(width / height, known);
}

/**
 * Returns a ratio that was asked for as a provider knows it: itself, or else the nearest of a list,
 * which is named as a loss.
 */
export function knownRatio(
  asked: string | undefined,
  known: readonly string[],
): { ratio: string | undefined; losses: readonly Loss[] } {
  const wanted = ratioOf(asked);
  if (asked === undefined || known.includes(asked)) return { ratio: asked, losses: [] };
  const ratio = wanted === undefined ? undefined : nearestTo(wanted, known);
  const reason = ratio === undefined ? "it is no ratio such as 16:9" : `sent as ${ratio}`;
  return { ratio, losses: [{ field: "aspect_ratio", reason }] };
}
