import { z } from "zod";
import {
  defineEndpoint,
  type Endpoint,
  type RequestContext,
} from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Method } from "../../http/endpoint.ts";
import { bytesAnswer } from "../../http/reply.ts";
import { pathOf } from "../../http/request-context.ts";
import type { RequestHeaders } from "../../http/served-request.ts";
import { readBodyBytes } from "../../http/bodies/read-body.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { type Provider, providerIdIn } from "../../inference/catalog/model.ts";
import { HiddenCredential } from "../../inference/pipeline/passthrough/hidden-credential.ts";
import { passOn } from "../../inference/pipeline/passthrough/passed-call.ts";
import {
  bearsOwnKey,
  passedHeaders,
  passedTarget,
  shownHeaders,
} from "../../inference/pipeline/passthrough/passthrough-route.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdText } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { inferenceBodyBytesMax } from "../inference/read-call.ts";
import { customerHeaderOf } from "../inference/request-names.ts";
import type { UpstreamResponse } from "../../inference/upstream/response-parser.ts";

/** Refuses keys that were not made for other routes than the gateway's own. */
function assertMayPass({ key }: LlmKeyCaller): void {
  if (key.passthrough === true && key.allowedModels === null) return;
  if (key.passthrough === true)
    throw new GatewayError(
      "forbidden",
      "This key has allowed_models, which no route of a provider's own keeps to; use a key without them.",
    );
  throw new GatewayError(
    "insufficient_scope",
    "This key lacks the scope passthrough. Create a key with scopes: [inference, passthrough].",
    { metadata: { required_scope: "passthrough" } },
  );
}

/** Returns the provider of a path. */
function providerOf(name: string, { inference }: Pick<Dependencies, "inference">): Provider {
  const catalog = inference.catalog();
  const provider = catalog.providers.get(providerIdIn(catalog, name) ?? name);
  if (provider !== undefined) return provider;
  const message = `There is no provider ${name}. GET /providers lists them.`;
  throw new GatewayError("unknown_provider", message);
}

/** Refuses a provider that the caller's privacy excludes. */
function assertReachable(
  provider: Provider,
  { caller, inference }: { caller: LlmKeyCaller; inference: Dependencies["inference"] },
): void {
  const { blockedProviders, zdr } = inference.privacyOf(caller);
  if (blockedProviders.includes(provider.id) || (zdr && provider.dataPolicy.zdr !== true))
    throw new GatewayError("forbidden", `The privacy settings exclude ${provider.id}.`);
}

/** Refuses sockets, whose messages no price covers. */
function refuseSocket(headers: RequestHeaders): void {
  if (headers.get("upgrade")?.toLowerCase() !== "websocket") return;
  const message =
    "WebSockets are not passed on: GET /realtime and GET /responses are the sockets of the gateway.";
  throw new GatewayError("not_configured", message);
}

/** Query parameters with a credential, and those by which Google takes headers and methods. */
const heldBackQuery = /^(?:key|api[-_]key|access_token|\$?http(?:headers|method)|_method)$/i;

/** Returns the query without credentials, and without what makes another request of it. */
function queryWithoutKeys(query: URLSearchParams): string {
  const kept = [...query].filter(
    ([name, value]) => !heldBackQuery.test(name) && !bearsOwnKey(value),
  );
  return kept.length === 0 ? "" : `?${new URLSearchParams(kept)}`;
}

/**
 * Returns the bytes of an answer as they come, without the provider's credential. A client that
 * leaves ends the exchange.
 */
function streamOf(
  response: Pick<UpstreamResponse, "next" | "abort">,
  { apiKey = "" }: Pick<Provider, "apiKey">,
): ReadableStream<Uint8Array> {
  const hiding = apiKey === "" ? undefined : new HiddenCredential(apiKey);
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      // A pull that brings nothing is not repeated.
      for (;;) {
        const piece = await response.next();
        const shown = piece === undefined ? hiding?.end() : (hiding?.next(piece) ?? piece);
        const hasBytes = shown !== undefined && shown.byteLength > 0;
        if (hasBytes) controller.enqueue(new Uint8Array(shown));
        if (piece === undefined) {
          controller.close();
          controller.byobRequest?.respond(0);
          return;
        }
        if (hasBytes) return;
      }
    },
    cancel: () => response.abort(),
  });
}

/** The start of the path: the gateway's own part, and the provider's name. */
const ownPart = /^(?:\/(?:api\/)?v1)?\/p\/[^/]+/;

async function pass(
  context: RequestContext,
  deps: Pick<Dependencies, "inference" | "ledger" | "clock">,
): Promise<Response> {
  const { request } = context;
  const caller = context.caller as LlmKeyCaller;
  const provider = providerOf(context.param("provider"), deps);
  assertMayPass(caller);
  assertReachable(provider, { caller, inference: deps.inference });
  const path = pathOf(request).replace(ownPart, "") || "/";
  // The platform leaves out the body of an answer to HEAD.
  const method = request.method === "HEAD" ? "GET" : request.method;
  const target = passedTarget(provider, { method, path, query: queryWithoutKeys(context.query) });
  const hasBody = method !== "GET";
  refuseSocket(request.headers);
  const { upstream, providerKeys } = deps.inference;
  const sent = await passOn(
    { ledger: deps.ledger, upstream, providerKeys, clock: deps.clock },
    {
      caller,
      customer: customerHeaderOf(request.headers),
      generationId: `gen_${context.traceId}`,
      provider,
      target,
      method,
      headers: passedHeaders(request.headerEntries()),
      body: hasBody ? await readBodyBytes(request, inferenceBodyBytesMax) : new Uint8Array(),
      signalOf: () => request.signal,
      userAgent: request.headers.get("user-agent") ?? undefined,
    },
  );
  const { response } = sent;
  return bytesAnswer(streamOf(response, sent.provider), {
    status: response.status,
    headers: {
      ...shownHeaders(Object.entries(response.headers), sent.provider.apiKey),
      ...context.headers,
      [brandHeader("Provider-Chain")]: provider.id,
      [brandHeader("Credential-Source")]: sent.credentialSource,
      [brandHeader("Credits-Charged")]: usdText(sent.chargedNano),
    },
  });
}

const passingWith = (method: Method): Endpoint<Dependencies> =>
  defineEndpoint<Pick<Dependencies, "inference" | "ledger" | "clock">>({
    method,
    path: "/p/:provider/*",
    base: "api",
    alsoAtRoot: true,
    access: { llmKey: true },
    counting: "at-door",
    bodyBytesMax: inferenceBodyBytesMax,
    unaudited: true,
    summary: "Call a route of a provider's own API.",
    description:
      "Sends the request to the provider's host with the workspace's own key there, or the gateway's credential. Only routes that the " +
      "operator has priced, and only for keys with the scope `passthrough`. A request that the provider refuses costs nothing, nor " +
      "does one that an own key pays for. The body has at most 32 MiB; the answer is streamed.",
    tag: "Inference",
    answerHeaders: {
      [brandHeader("Credits-Charged")]: "USD that were charged.",
      [brandHeader("Credential-Source")]: "Whose key was sent: platform or own_byok.",
    },
    response: () => z.unknown(),
    encodeError: encodeContractError,
    handle: pass,
  });

/** Every method of providers' own routes. */
export const passthroughs = (["GET", "POST", "PUT", "PATCH", "DELETE"] as const).map(passingWith);
