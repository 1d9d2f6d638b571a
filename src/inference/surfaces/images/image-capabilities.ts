import { routeDialect, type UpstreamRoute } from "../../catalog/model.ts";
import { geminiRatios, imagenRatios } from "./google-images.ts";
import { picturesMax } from "./image-request.ts";
import { isGptImage, qualitiesOf, sizesOf, xaiRatios } from "./openai-images.ts";

/** What a parameter of a request for pictures takes, as OpenRouter's clients read it. */
type Capability =
  | { type: "enum"; values: string[] }
  | { type: "range"; min: number; max: number }
  | { type: "boolean" };

/** Parameters of OpenRouter's `POST /images` that a route takes, by name. */
type Capabilities = Record<string, Capability>;

/** What one route can be asked for. */
interface ImageAbilities {
  parameters: Capabilities;
  /** Whether its provider streams pictures itself. */
  streams: boolean;
}

const oneOf = (values: readonly string[]): Capability => ({ type: "enum", values: [...values] });
const upTo = (max: number, min = 0): Capability => ({ type: "range", min, max });

const count = { n: upTo(10, 1) };
const references = { input_references: upTo(picturesMax) };

/** Ratios of OpenRouter that lie within those of OpenAI's free sizes, 1:3 to 3:1. */
const freeRatios = [
  "auto",
  "1:1",
  "1:2",
  "2:1",
  "2:3",
  "2.35:1",
  "3:2",
  "3:4",
  "4:3",
  "4:5",
  "5:2",
  "5:4",
  "9:16",
  "16:9",
  "9:19.5",
  "19.5:9",
  "9:20",
  "20:9",
  "9:21",
  "21:9",
];

const tiers = ["512", "1K", "2K", "4K"];

function ofOpenai(name: string): Capabilities {
  const qualities = qualitiesOf(name);
  if (qualities === undefined) return { ...count, ...references };
  const quality = oneOf(qualities);
  if (name.startsWith("dall-e-2")) return { ...count, aspect_ratio: oneOf(["1:1"]), quality };
  if (name.startsWith("dall-e"))
    return { n: upTo(1, 1), aspect_ratio: oneOf(["1:1", "7:4", "4:7"]), quality };
  const isFree = sizesOf(name) === undefined;
  return {
    ...count,
    aspect_ratio: oneOf(isFree ? freeRatios : ["auto", "1:1", "3:2", "2:3"]),
    ...(isFree && { resolution: oneOf(tiers) }),
    quality,
    background: oneOf(["auto", "opaque", "transparent"]),
    output_format: oneOf(["png", "jpeg", "webp"]),
    output_compression: upTo(100),
    ...references,
  };
}

function ofGoogle(name: string): Capabilities {
  const isImagen = /^(?:models\/)?imagen-/.test(name);
  if (isImagen)
    return { ...count, aspect_ratio: oneOf(imagenRatios), resolution: oneOf(["1K", "2K"]) };
  // The first model that draws knows one resolution.
  const isFirst = name.includes("gemini-2");
  return {
    ...count,
    aspect_ratio: oneOf(geminiRatios),
    ...(!isFirst && { resolution: oneOf(["1K", "2K", "4K"]) }),
    ...references,
  };
}

/** Returns what a route's pictures can be asked for, by its dialect and its model. */
export function imageAbilities(route: UpstreamRoute): ImageAbilities {
  const { upstreamModel, provider, supportedParameters: declared } = route;
  const { pictures } = provider.deviations;
  const isGoogle = routeDialect(route, "images") === "google-images";
  const parameters = isGoogle
    ? ofGoogle(upstreamModel)
    : pictures === "aspect-ratio"
      ? {
          ...count,
          aspect_ratio: oneOf(xaiRatios),
          resolution: oneOf(["1K", "2K"]),
          ...references,
        }
      : pictures === "width-height"
        ? {
            ...count,
            seed: { type: "boolean" as const },
            output_format: oneOf(["png", "jpeg"]),
            ...references,
          }
        : ofOpenai(upstreamModel);
  return {
    parameters: Object.fromEntries(
      Object.entries(parameters).filter(([name]) => declared?.includes(name) ?? true),
    ),
    streams: !isGoogle && pictures === undefined && isGptImage(upstreamModel),
  };
}

/** Returns the values of either, in the order of the first. */
function joined(one: Capability | undefined, other: Capability): Capability {
  if (one?.type === "enum" && other.type === "enum")
    return oneOf([...new Set([...one.values, ...other.values])]);
  if (one?.type === "range" && other.type === "range")
    return upTo(Math.max(one.max, other.max), Math.min(one.min, other.min));
  return one ?? other;
}

/** Returns what any of several routes can be asked for. */
export function joinedAbilities(routes: readonly UpstreamRoute[]): ImageAbilities {
  const each = routes.map(imageAbilities);
  const parameters: Capabilities = {};
  for (const { parameters: own } of each)
    for (const [name, capability] of Object.entries(own))
      parameters[name] = joined(parameters[name], capability);
  return { parameters, streams: each.some(({ streams }) => streams) };
}
