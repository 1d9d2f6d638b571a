import { z } from "zod";
import { presentedSecrets } from "../../../access/presented-secrets.ts";
import { countRequest } from "../../../access/count-request.ts";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { lazily } from "../../../http/endpoint.ts";
import { encodeContractError } from "../../../http/error-envelope.ts";
import { SocketUpgrade } from "../../../http/sockets/socket-upgrade.ts";
import type { ClientSecret } from "../../../identity/keys/client-secrets.ts";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import type { CallOrigin } from "../../../inference/pipeline/inference-call.ts";
import { realtimeTarget } from "../../../inference/surfaces/realtime/realtime-target.ts";
import { openAffordable } from "../../../inference/surfaces/realtime/realtime-turn.ts";
import { UpstreamSocket } from "../../../inference/upstream/upstream-socket.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../dependencies.ts";
import { originOf, rateClassOf } from "../read-call.ts";
import { refuseForeignPages } from "./foreign-pages.ts";
import { RealtimeConnection } from "./realtime-connection.ts";

const querySchema = z.looseObject({
  model: z.string().optional().describe("Model of the session, which it cannot change."),
});

const eventSchema = lazily(() =>
  z.looseObject({ type: z.string().describe("Name of an event of OpenAI's Realtime API.") }),
);

/** Tokens that the first response of a session is held for, before anything was sent. */
const firstInputTokens = 512;

/** Serves OpenAI's Realtime API over a WebSocket, on models with the surface `realtime`. */
export const realtime = defineEndpoint<
  Pick<Dependencies, "inference" | "directory" | "counters" | "clock" | "publicUrl">
>({
  method: "GET",
  path: "/realtime",
  base: "api",
  socket: { client: eventSchema, server: eventSchema },
  access: { llmKey: true },
  counting: "by-handler",
  summary: "Open a realtime session.",
  description:
    "OpenAI's Realtime API (GA): events pass in both directions as they are, except for the name of the model. Each response is " +
    "held before it begins, charged by `response.done`, and recorded. A session whose next response cannot be held is closed with " +
    "1008 behind an `error` event. Browsers send the key as the subprotocol `openai-insecure-api-key.<key>` beside `realtime`.",
  tag: "Inference",
  query: querySchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const { publicUrl, counters } = dependencies;
    const caller = context.caller as LlmKeyCaller;
    refuseForeignPages(context, publicUrl());
    const secret = clientSecretOf(context, dependencies);
    const model = secret?.model ?? modelOf(context);
    const counting = countRequest(counters, {
      caller,
      rateClass: rateClassOf(model),
      headers: context.answerHeaders,
    });
    if (counting !== undefined) await counting;
    const origin = originOf(context, { idPrefix: "resp_", body: {}, caller });
    const session = await openSession(dependencies, { origin, model });
    if (secret !== undefined) session.configure(secret.session);
    context.settled = true;
    return new SocketUpgrade(session, { headers: context.headers, protocol: protocolOf(context) });
  },
});

/** Refuses sessions that translate, which have events and a meter of their own. */
export const realtimeTranslations = defineEndpoint<unknown>({
  method: "GET",
  path: "/realtime/translations",
  base: "api",
  socket: { client: eventSchema, server: eventSchema },
  access: { llmKey: true },
  counting: "at-door",
  summary: "Not offered: sessions that translate.",
  description: "Answers 501 to a handshake. Ask a session at GET /realtime to translate instead.",
  tag: "Inference",
  encodeError: encodeContractError,
  handle() {
    throw new GatewayError(
      "not_configured",
      "Sessions that translate are not offered. Open one at /realtime and instruct it to translate.",
    );
  },
});

function modelOf({ query }: RequestContext): string {
  if (query.has("call_id"))
    throw new GatewayError(
      "not_configured",
      "call_id: calls over WebRTC and SIP are not offered.",
      {
        param: "call_id",
      },
    );
  const model = query.get("model");
  if (model !== null && model !== "") return model;
  if (query.get("intent") === "transcription") {
    const message =
      "intent: sessions for transcription alone are not offered. Use POST /audio/transcriptions.";
    throw new GatewayError("not_configured", message, { param: "intent" });
  }
  throw new GatewayError("bad_request", "model: name the model of the session in the query.", {
    param: "model",
  });
}

/**
 * Returns the client secret that a handshake carries; undefined where it carries a key. Throws 403
 * where the query names another model than the secret's.
 */
function clientSecretOf(
  { request: { headers }, query }: RequestContext,
  { directory }: Pick<Dependencies, "directory">,
): ClientSecret | undefined {
  for (const secret of presentedSecrets(headers, null)) {
    const opened = directory.clientSecrets?.open(secret);
    if (opened === undefined) continue;
    const model = query.get("model") ?? opened.model;
    if (model === opened.model) return opened;
    const message = `model: this client secret is good for ${opened.model} alone.`;
    throw new GatewayError("forbidden", message, { param: "model" });
  }
  return undefined;
}

/** Returns the subprotocol of the session; the credential among those that were offered is none. */
const protocolOf = ({ request: { headers } }: RequestContext): string | undefined =>
  headers
    .get("sec-websocket-protocol")
    ?.split(",")
    .map((name) => name.trim())
    .find((name) => name === "realtime");

/** Holds the first response, and opens a socket at the first provider that accepts one. */
async function openSession(
  { inference, directory, clock }: Pick<Dependencies, "inference" | "directory" | "clock">,
  { origin, model }: { origin: CallOrigin; model: string },
): Promise<RealtimeConnection> {
  const gone = new AbortController();
  const kept = { ...origin, signalOf: () => gone.signal };
  const bound = { inputTokens: firstInputTokens, maxOutputTokens: undefined };
  const { turn, cap } = await openAffordable(inference, { origin: kept, model, bound });
  let problem = "no provider can be called";
  for (const planned of turn.execution.candidates) {
    const candidate = turn.serveBy(planned);
    const target = candidate && realtimeTarget(candidate.route);
    if (candidate === undefined || target === undefined) continue;
    try {
      const connectTimeoutMs = candidate.route.provider.timeouts.connectMs * 2;
      const upstream = await UpstreamSocket.open({
        ...target,
        connectTimeoutMs,
        route: inference.upstream.routeTo(target.url, candidate.route.provider.proxy),
      });
      return new RealtimeConnection({
        deps: inference,
        upstream,
        origin: kept,
        model,
        candidate,
        turn,
        cap,
        liveCaller: () => directory.liveLlmKey(origin.caller.key.id, clock.nowMs()),
      });
    } catch (error) {
      problem = `${candidate.route.provider.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  turn.free();
  throw new GatewayError("bad_gateway", `No provider opened a session (${problem}).`);
}
