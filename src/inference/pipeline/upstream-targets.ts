import { assert } from "../../platform/kernel/assert.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import {
  isReachable,
  routeBaseUrl,
  routeDialect,
  type CatalogModel,
  type Provider,
  type Surface,
  type UpstreamRoute,
} from "../catalog/model.ts";
import { countPath, endpointPath, sendableDialects } from "../providers/endpoint.ts";
import { createSigner, postFormThrough } from "../upstream/signing/create-signer.ts";
import type { RequestSigner } from "../upstream/signing/request-signer.ts";
import {
  upstreamTarget,
  type UpstreamClient,
  type UpstreamTarget,
} from "../upstream/upstream-client.ts";

/**
 * The purpose of an upstream call: an answer, or a count of the prompt's tokens (Messages and
 * Google's dialect alone).
 */
export type Purpose = "answer" | "count-tokens";

/** The facts on which a target depends, beside its route. */
interface TargetOptions {
  surface: Surface;
  stream: boolean;
  purpose: Purpose;
  /** The path and query of one request, whose content type comes with it; absent elsewhere. */
  path?: string | undefined;
}

/** Returns where requests of a route are sent, whole or streamed. */
export type TargetLookup = (route: UpstreamRoute, options: TargetOptions) => UpstreamTarget;

/**
 * Whether each known route is servable. A route belongs to one model and never changes within a
 * catalog, and planning asks about every route.
 */
const servable = new WeakMap<UpstreamRoute, boolean>();

/**
 * Returns whether a route serves callers without a key of their own: it can be called with a
 * platform credential, and billed.
 */
export function isServable(route: UpstreamRoute, model: CatalogModel): boolean {
  let is = servable.get(route);
  if (is === undefined) servable.set(route, (is = isReachable(route, model, sendableDialects)));
  return is;
}

/**
 * Creates the lookup of where a chat route's requests are sent. The constant part of their head is
 * built once for each route.
 */
export function createTargetLookup(services: {
  clock: Clock;
  upstream: UpstreamClient;
}): TargetLookup {
  const signerOf = signerLookup(services);
  const whole = new WeakMap<UpstreamRoute, UpstreamTarget>();
  const streamed = new WeakMap<UpstreamRoute, UpstreamTarget>();
  const counting = new WeakMap<UpstreamRoute, UpstreamTarget>();
  return (route, options) => {
    if (options.path !== undefined)
      return buildTarget(route, { ...options, signer: signerOf(route.provider) });
    const targets =
      options.purpose === "count-tokens" ? counting : options.stream ? streamed : whole;
    let target = targets.get(route);
    if (target === undefined)
      targets.set(
        route,
        (target = buildTarget(route, { ...options, signer: signerOf(route.provider) })),
      );
    return target;
  };
}

/** Returns signers by provider, one for each, since a signer keeps its token. */
function signerLookup({ clock, upstream }: { clock: Clock; upstream: UpstreamClient }) {
  const signers = new WeakMap<Provider, RequestSigner>();
  return (provider: Provider): RequestSigner | undefined => {
    if (provider.signing === undefined) return undefined;
    let signer = signers.get(provider);
    if (signer === undefined) {
      signer = createSigner(provider.signing, { clock, post: postFormThrough(upstream, provider) });
      signers.set(provider, signer);
    }
    return signer;
  };
}

/** Where a request is sent, with the constant headers. */
interface Address {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** Returns where requests of a route are sent, with the headers that authenticate them. */
export function addressOf(
  route: UpstreamRoute,
  { surface, stream, purpose, path: own }: TargetOptions,
): Address {
  const { provider, upstreamModel } = route;
  const dialect = routeDialect(route, surface);
  const answerPath =
    own ??
    (dialect && endpointPath(dialect, { upstreamModel, stream, deviations: provider.deviations }));
  const path = purpose === "count-tokens" ? answerPath && countPath(answerPath) : answerPath;
  const baseUrl = routeBaseUrl(route, surface);
  assert(baseUrl !== undefined && path !== undefined, `provider ${provider.id} cannot be called`);
  const { name, prefix } = provider.credentialHeader;
  const url = baseUrl + path;
  const headers = {
    ...(own === undefined && { "content-type": "application/json" }),
    "user-agent": "switchyard",
    ...provider.headers,
    ...(provider.apiKey === undefined || provider.apiKey === ""
      ? {}
      : { [name]: prefix + provider.apiKey }),
  };
  return { url, headers };
}

function buildTarget(
  route: UpstreamRoute,
  { signer, ...options }: TargetOptions & { signer: RequestSigner | undefined },
): UpstreamTarget {
  const { url, headers } = addressOf(route, options);
  return {
    ...upstreamTarget(url, headers, route.provider),
    ...(signer !== undefined && { signing: { signer, url, headers } }),
  };
}
