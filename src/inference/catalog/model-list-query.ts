import { z } from "zod";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { CatalogModel } from "./model.ts";
import { present } from "./present.ts";

export type ModelSort = "added" | "usage" | "name";

/** Filters and order of `GET /models`, read from its query string. */
export interface ModelListQuery {
  /** Also models that the caller cannot reach. */
  all: boolean;
  /** A provider's slug or name, or the owner of models. */
  provider?: string;
  category?: CatalogModel["category"];
  minContext?: number;
  /** Every one of these, in the catalog's spelling. */
  capabilities: readonly string[];
  sort?: ModelSort;
  /** Also models of providers that the caller's privacy settings leave out. */
  ignoresPrivacy: boolean;
  /** The caller wants no presets beside the models. */
  withoutPresets: boolean;
  /** Models that are passed over, as OpenRouter's clients page. */
  offset: number;
  /** Models that the answer has at most; absent means all. */
  limit?: number;
}

const sortNames: Readonly<Record<string, ModelSort>> = {
  added: "added",
  newest: "added",
  new: "added",
  created: "added",
  usage: "usage",
  top: "usage",
  "top-usage": "usage",
  popular: "usage",
  name: "name",
  id: "name",
};

const minContextSchema = z.coerce.number().int().nonnegative();

/** Reads the query string of `GET /models`; throws `bad_request` with the parameter that cannot be read. */
export function parseModelListQuery(parameters: URLSearchParams): ModelListQuery {
  const provider = text(parameters, "provider");
  const category = categoryOf(text(parameters, "category"));
  const minContext = minContextOf(text(parameters, "min_context"));
  const sort = sortOf(text(parameters, "sort"));
  return {
    all: wantsAll(parameters),
    capabilities: capabilitiesOf(parameters),
    ignoresPrivacy: isOff(parameters, "privacy"),
    withoutPresets: isOff(parameters, "presets"),
    offset: countOf(parameters, "offset", 0) ?? 0,
    ...present({ limit: countOf(parameters, "limit", 1) }),
    ...(provider !== undefined && { provider }),
    ...(category !== undefined && { category }),
    ...(minContext !== undefined && { minContext }),
    ...(sort !== undefined && { sort }),
  };
}

const text = (parameters: URLSearchParams, name: string): string | undefined =>
  parameters.get(name)?.trim() || undefined;

const isOff = (parameters: URLSearchParams, name: string): boolean =>
  ["0", "false"].includes(text(parameters, name)?.toLowerCase() ?? "");

const wantsAll = (parameters: URLSearchParams): boolean =>
  ["1", "true", "yes"].includes(text(parameters, "all")?.toLowerCase() ?? "") ||
  ["unavailable", "all"].includes(text(parameters, "include")?.toLowerCase() ?? "");

/** `capability` may be repeated; `supported` is its older form with commas. */
function capabilitiesOf(parameters: URLSearchParams): string[] {
  const written = [...parameters.getAll("capability"), ...parameters.getAll("supported")];
  const names = written
    .flatMap((list) => list.split(","))
    .map((name) => capabilitySlug(name.trim()));
  return [...new Set(names)].filter((name) => name !== "");
}

/** `function_calling` and `Function-Calling` mean `function-calling`. */
export const capabilitySlug = (name: string): string => name.toLowerCase().replaceAll("_", "-");

function minContextOf(written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  const parsed = minContextSchema.safeParse(written);
  if (parsed.success) return parsed.data;
  const message = "min_context must be a number of tokens, such as 128000.";
  throw new GatewayError("bad_request", message, { param: "min_context" });
}

function countOf(parameters: URLSearchParams, name: string, minimum: number): number | undefined {
  const written = text(parameters, name);
  if (written === undefined) return undefined;
  const parsed = z.coerce.number().int().min(minimum).safeParse(written);
  if (parsed.success) return parsed.data;
  throw new GatewayError("bad_request", `${name} must be a whole number of at least ${minimum}.`, {
    param: name,
  });
}

const isCategory = (written: string): written is CatalogModel["category"] =>
  ["text", "image", "audio", "embedding"].includes(written);

function categoryOf(written: string | undefined): CatalogModel["category"] | undefined {
  const category = written?.toLowerCase();
  if (category === undefined || isCategory(category)) return category;
  throw new GatewayError("bad_request", "category must be text, image, audio or embedding.", {
    param: "category",
  });
}

function sortOf(written: string | undefined): ModelSort | undefined {
  if (written === undefined) return undefined;
  const sort = sortNames[written.toLowerCase()];
  if (sort !== undefined) return sort;
  throw new GatewayError("bad_request", "sort must be added, usage or name.", { param: "sort" });
}
