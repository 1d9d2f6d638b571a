import { z } from "zod";
import { countRequest } from "../../../../access/count-request.ts";
import { defineEndpoint, type RequestContext } from "../../../../access/define-endpoint.ts";
import { presentedSecrets } from "../../../../access/presented-secrets.ts";
import { lazily } from "../../../../http/endpoint.ts";
import { encodeContractError } from "../../../../http/error-envelope.ts";
import type { SocketSession } from "../../../../http/sockets/client-socket.ts";
import { SocketUpgrade } from "../../../../http/sockets/socket-upgrade.ts";
import type { LlmKeyCaller } from "../../../../identity/keys/caller.ts";
import type { ClientSecret } from "../../../../identity/keys/client-secrets.ts";
import { lowerBrandHeader } from "../../../../platform/kernel/brand.ts";
import { badField, GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { originOf, rateClassOf } from "../../read-call.ts";
import { refuseForeignPages } from "../foreign-pages.ts";
import { asksForBeta, betaLosses, betaProtocol, BetaSession } from "./beta-session.ts";
import { openResponses, openSound, type SessionRequest } from "./open-session.ts";

const lossHeader = lowerBrandHeader("Translation-Loss");

const querySchema = z.looseObject({
  model: z.string().optional().describe("Model of the session, which it cannot change."),
  deployment: z.string().optional().describe("The model, as Azure's clients name it."),
  intent: z
    .string()
    .optional()
    .describe("transcription opens a session that writes down what is said, and answers nothing."),
});

const eventSchema = lazily(() =>
  z.looseObject({ type: z.string().describe("Name of an event of OpenAI's Realtime API.") }),
);

/** The parts with which sessions are opened. */
type SessionParts = Pick<
  Dependencies,
  "inference" | "directory" | "counters" | "clock" | "publicUrl"
>;

const shared = {
  method: "GET" as const,
  base: "api" as const,
  socket: { client: eventSchema, server: eventSchema },
  access: { llmKey: true as const },
  counting: "by-handler" as const,
  tag: "Inference",
  encodeError: encodeContractError,
};

/** Serves OpenAI's Realtime API over a WebSocket, on models with the surface `realtime`. */
export const realtime = defineEndpoint<SessionParts>({
  ...shared,
  path: "/realtime",
  summary: "Open a realtime session.",
  description:
    "OpenAI's Realtime API (GA): events pass in both directions as they are, except for the name of the model. Each response is " +
    "held before it begins, charged by `response.done`, and recorded. A session whose next response cannot be held is closed with " +
    "1008 behind an `error` event. `intent=transcription` opens a session whose `session.update` names a model with the surface " +
    "transcriptions. Clients of the beta send `OpenAI-Beta: realtime=v1` and are answered in its events. Browsers send the key as " +
    "the subprotocol `openai-insecure-api-key.<key>` beside `realtime`.",
  query: querySchema,
  async handle(context, dependencies) {
    const { query } = context;
    if (query.has("call_id"))
      throw new GatewayError(
        "not_configured",
        "call_id: calls over WebRTC and SIP are not offered, since their sound could not be metered. Open a WebSocket with ?model=.",
        { param: "call_id" },
      );
    const secret = clientSecretOf(context, dependencies);
    const transcribes =
      secret === undefined
        ? query.get("intent") === "transcription"
        : secret.session["type"] === "transcription";
    if (secret?.session["type"] === "translation") throw wrongSecret("/realtime/translations");
    const model = secret?.model ?? query.get("model") ?? query.get("deployment") ?? "";
    if (model === "" && !transcribes)
      throw badField("model", "name the model of the session in the query.");
    const work = transcribes ? "transcription" : "responses";
    return upgraded(context, dependencies, { model, secret, work });
  },
});

/** Serves OpenAI's sessions that translate speech, on models that are priced by the minute. */
export const realtimeTranslations = defineEndpoint<SessionParts>({
  ...shared,
  path: "/realtime/translations",
  summary: "Open a session that translates.",
  description:
    "OpenAI's translation sessions: `session.update`, `session.input_audio_buffer.append` and `session.close` from the client, sound " +
    "and transcripts from the provider. The sound that is sent is held ahead, and charged each minute and at the end by its time.",
  query: z.looseObject({ model: z.string().optional().describe("Model of the session.") }),
  async handle(context, dependencies) {
    const secret = clientSecretOf(context, dependencies);
    if (secret !== undefined && secret.session["type"] !== "translation")
      throw wrongSecret("/realtime");
    const model = secret?.model ?? context.query.get("model") ?? "";
    if (model === "") throw badField("model", "name the model of the session in the query.");
    return upgraded(context, dependencies, { model, secret, work: "translation" });
  },
});

const wrongSecret = (path: string): GatewayError =>
  new GatewayError("forbidden", `This client secret opens sessions at ${path} alone.`);

/** Opens a session, and answers its handshake. */
async function upgraded(
  context: RequestContext,
  dependencies: SessionParts,
  {
    model,
    secret,
    work,
  }: Pick<SessionRequest, "model" | "work"> & { secret: ClientSecret | undefined },
): Promise<SocketUpgrade> {
  const { publicUrl, counters } = dependencies;
  const caller = context.caller as LlmKeyCaller;
  refuseForeignPages(context, publicUrl());
  const counting = countRequest(counters, {
    caller,
    rateClass: rateClassOf(model),
    headers: context.answerHeaders,
  });
  if (counting !== undefined) await counting;
  const origin = originOf(context, { idPrefix: "resp_", body: {}, caller });
  const request = { origin, model, work, isNarrowed: secret !== undefined };
  const session = await (work === "responses"
    ? openResponses(dependencies, request)
    : openSound(dependencies, { ...request, work }));
  if (secret !== undefined) session.configure(secret.session);
  context.settled = true;
  const { headers } = context.request;
  const isBeta = work !== "translation" && asksForBeta(headers);
  const shown: SocketSession = isBeta ? new BetaSession(session) : session;
  const losses = isBeta ? { [lossHeader]: betaLosses } : {};
  return new SocketUpgrade(shown, {
    headers: { ...context.headers, ...losses },
    protocol: protocolOf(context),
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
    .find((name) => name === "realtime" || name === betaProtocol);
