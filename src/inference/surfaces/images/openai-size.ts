import type { Loss } from "../../canonical/request.ts";
import { pixelsOf, ratioOf, type ImageRequest } from "./image-request.ts";

/** Members of OpenRouter's `POST /images` that OpenAI's models answer with 400. */
const otherMembers = ["aspect_ratio", "resolution", "seed"];

/** The sides of a square picture of each tier, in pixels. */
const tierSides: Readonly<Record<string, number>> = {
  "512": 512,
  "0.5k": 512,
  "1k": 1_024,
  "2k": 2_048,
  "4k": 3_840,
};

/** The largest sides of a picture, and what both have to be multiples of (npm openai 7.59). */
const [longestSide, shortestSideMax, step] = [3_840, 2_160, 16];

/** The most that one side may be of the other. */
const ratioMax = 3;

const isBeyond = (ratio: number): boolean => Math.max(ratio, 1 / ratio) > ratioMax;

/** Returns the pixels of a ratio whose area is that of a tier, within OpenAI's bounds. */
function pixelsAt(asked: number, side: number): string {
  const ratio = Math.min(ratioMax, Math.max(1 / ratioMax, asked));
  const [width, height] = [side * Math.sqrt(ratio), side / Math.sqrt(ratio)];
  const scale = Math.min(
    1,
    longestSide / Math.max(width, height),
    shortestSideMax / Math.min(width, height),
  );
  const whole = [width, height].map((each) => Math.floor((each * scale) / step) * step);
  // Rounded down, the shorter side may be too short for the longer.
  const most = Math.min(...whole) * ratioMax;
  return whole.map((each) => Math.min(each, most)).join("x");
}

/** Returns the size of a list whose ratio is nearest. */
function nearestOf(sizes: readonly string[], ratio: number): string | undefined {
  const distance = (size: string): number => {
    const [width = 1, height = 1] = pixelsOf(size) ?? [];
    return Math.abs(Math.log(width / height / ratio));
  };
  const known = sizes.filter((size) => pixelsOf(size) !== undefined);
  return known.sort((one, other) => distance(one) - distance(other))[0];
}

/**
 * Returns a request to a model of OpenAI's whose ratio and tier, as OpenRouter's clients name them,
 * are written as pixels, and what is lost. `sizes` are those that the model knows; undefined where
 * it takes any.
 */
export function inPixels(
  request: ImageRequest,
  sizes: readonly string[] | undefined,
): { request: ImageRequest; losses: readonly Loss[] } {
  const { fields, size, aspectRatio } = request;
  const side = tierSides[size?.toLowerCase() ?? ""];
  const ratio = ratioOf(aspectRatio);
  const isOther = otherMembers.some((name) => fields[name] !== undefined);
  if (!isOther && side === undefined) return { request, losses: [] };
  const isOpen = size === undefined || size === "auto" || side !== undefined;
  const translates = isOpen && (ratio !== undefined || side !== undefined);
  const pixels = translates
    ? sizes === undefined
      ? pixelsAt(ratio ?? 1, side ?? 1_024)
      : nearestOf(sizes, ratio ?? 1)
    : undefined;
  const kept = Object.entries(fields).filter(([name]) => !otherMembers.includes(name));
  const isCut = ratio !== undefined && isBeyond(ratio);
  const lost = (name: string): boolean =>
    fields[name] !== undefined &&
    // What the model chooses anyway is not lost.
    fields[name] !== "auto" &&
    (name === "seed" || !translates || sizes !== undefined || (isCut && name === "aspect_ratio"));
  return {
    request: {
      ...request,
      size: pixels ?? size,
      fields: { ...Object.fromEntries(kept), ...(pixels !== undefined && { size: pixels }) },
    },
    losses: otherMembers.filter(lost).map((field) => ({
      field,
      reason:
        field !== "seed" && translates ? `sent as size ${pixels}` : "OpenAI has no such field",
    })),
  };
}
