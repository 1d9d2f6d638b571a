import { pathOf } from "../../http/request-context.ts";
import type { HttpRequest } from "../../http/served-request.ts";

/**
 * Roots under which Google's clients look for its API: their versions name different ones, and a
 * base URL may have a path of its own.
 */
const roots = [
  ...["/v1beta", "/v1alpha", "/v1beta1"],
  ...["/gemini/v1beta", "/gemini/v1", "/gemini/v1alpha"],
] as const;

/** Where Vertex AI has the models of publishers: of a project, and of none. */
const publishers = ["/v1", "/v1beta1"].flatMap((version) => [
  `${version}/publishers`,
  `${version}/projects/:project/locations/:location/publishers`,
]);

const vertexModels = publishers.map((place) => `${place}/:publisher/models/*`);

/** Returns a path below every root but the first, which documents list. */
const below = (path: string): string[] => roots.slice(1).map((root) => root + path);

/**
 * The path of models with a method, and the other paths under which clients write it: the AI SDK and
 * LangChain's package for JavaScript leave out `models/` before an id with a slash, and the guides of
 * other gateways double it.
 */
export const methodPaths = {
  base: "root",
  path: "/v1beta/models/:model",
  alsoAt: [
    ...["/v1beta/models/*", ...vertexModels, ...below("/models/*")],
    ...roots.map((root) => `${root}/*`),
  ],
} as const;

/** The path of a model without a method. */
export const modelPaths = {
  base: "root",
  path: "/v1beta/models/:model",
  alsoAt: ["/v1beta/models/*", ...below("/models/*"), ...vertexModels],
} as const;

/** The path of the list of models. */
export const listPaths = {
  base: "root",
  path: "/v1beta/models",
  alsoAt: [...below("/models"), ...publishers.map((place) => `${place}/google/models`)],
} as const;

/** Returns whether a path is one of Vertex AI's, where models have publishers. */
export const isOfVertex = (request: Pick<HttpRequest, "url">): boolean =>
  /^\/v1(?:beta1)?\/(?:projects\/[^/]+\/locations\/[^/]+\/)?publishers\//.test(pathOf(request));

/** Resources that Google has and the gateway does not; what else is posted there is a method. */
export const otherPaths = {
  base: "root",
  path: "/upload/v1beta/*",
  alsoAt: [
    ...["/upload/v1/*", "/upload/v1alpha/*"],
    ...roots.map((root) => `${root}/*`),
    ...["/v1/cachedContents", "/v1/cachedContents/*", "/v1/interactions", "/v1/interactions/*"],
  ],
} as const;

/** A model and what is asked of it, such as `generateContent`. */
interface ModelMethod {
  model: string;
  /** Empty where the path names none. */
  method: string;
}

/**
 * Reads the model and the method of a path. The model may contain slashes, written as they are or
 * encoded, and ends at the last colon: ids of models contain colons too.
 */
export function modelMethodOf(request: Pick<HttpRequest, "url">): ModelMethod {
  const named = modelOf(request);
  const end = named.lastIndexOf(":");
  return end < 0
    ? { model: named, method: "" }
    : { model: named.slice(0, end), method: named.slice(end + 1) };
}

/** Returns the model of a path without a method. */
export const modelOf = (request: Pick<HttpRequest, "url">): string =>
  decoded(pathOf(request))
    .replace(/^.*?\/v1(?:beta1?|alpha)?\//, "")
    .replace(/^projects\/[^/]+\/locations\/[^/]+\//, "")
    .replace(/^(?:models\/)+/, "")
    .replace(/^publishers\/google\/models\//, "")
    // The client for Vertex AI writes the owner of an id as its publisher.
    .replace(/^publishers\/([^/]+)\/models\//, "$1/");

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
