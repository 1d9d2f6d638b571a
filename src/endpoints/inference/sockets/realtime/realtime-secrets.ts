import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../../access/define-endpoint.ts";
import { encodeContractError } from "../../../../http/error-envelope.ts";
import { lazily } from "../../../../http/endpoint.ts";
import type { LlmKeyCaller } from "../../../../identity/keys/caller.ts";
import { tryOut } from "../../../../inference/pipeline/begin-execution.ts";
import { gaSettings } from "../../../../inference/surfaces/realtime/beta-events.ts";
import {
  readSession,
  transcriptionModelOf,
  transcriptionParam,
} from "../../../../inference/surfaces/realtime/realtime-session.ts";
import type { SessionWork } from "../../../../inference/surfaces/realtime/realtime-target.ts";
import { soundCall } from "../../../../inference/surfaces/realtime/sound-call.ts";
import { realtimeCall } from "../../../../inference/surfaces/realtime/realtime-call.ts";
import { badField, GatewayError } from "../../../../platform/kernel/errors.ts";
import { nanoFromUsd } from "../../../../platform/kernel/money.ts";
import { timeOrderedHex } from "../../../../platform/kernel/ids.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { originOf } from "../../read-call.ts";

/** The parts with which secrets are made. */
type SecretParts = Pick<Dependencies, "inference" | "directory" | "clock" | "runs">;

const shared = {
  method: "POST" as const,
  base: "api" as const,
  access: { llmKey: true as const },
  counting: "at-door" as const,
  tag: "Inference",
  encodeError: encodeContractError,
};

/** Seconds for which a client secret is good, unless the request says otherwise. */
const defaultSeconds = 600;

const secondsText = "must be a number of seconds from 10 to 7200";

const limitText = "must be a number of USD above 0";

const secretBodySchema = z.looseObject({
  expires_after: z
    .looseObject({
      anchor: z.literal("created_at").optional(),
      seconds: z
        .int(secondsText)
        .min(10, secondsText)
        .max(7_200, secondsText)
        .default(defaultSeconds),
    })
    .optional()
    .describe("When the secret ends; sessions that it has opened go on."),
  session: z
    .looseObject({
      type: z
        .enum(["realtime", "transcription", "translation"])
        .optional()
        .describe("What the session does. Default: realtime."),
      model: z
        .string()
        .optional()
        .describe("Model of the session; the secret is good for no other."),
    })
    .describe("Settings that the session begins with."),
  limit: z
    .number(limitText)
    .positive(limitText)
    .optional()
    .describe("USD that sessions of the secret may spend together, carved out of the key's limit."),
});

const sessionSchema = () => z.looseObject({ id: z.string(), object: z.string() });

const secretSchema = lazily(() =>
  z
    .object({
      value: z.string().describe("The secret, beginning with ek_."),
      expires_at: z.int().describe("When it ends, in Unix seconds."),
      session: sessionSchema().describe("The settings that its session begins with."),
    })
    .meta({ id: "RealtimeClientSecret" }),
);

type SecretBody = z.infer<typeof secretBodySchema>;

/** Answers a request for a client secret. */
async function answerSecret(
  context: RequestContext<SecretBody>,
  { dependencies, work }: { dependencies: SecretParts; work?: SessionWork },
): Promise<Response | ReturnType<typeof context.json>> {
  const { session, limit, expires_after: { seconds = defaultSeconds } = {} } = context.body;
  const made = await issue(context, {
    session: work === "translation" ? { ...session, type: "translation" } : session,
    ...{ seconds, limit, dependencies },
  });
  return context.json({ value: made.value, expires_at: made.expiresAt, session: made.session });
}

/** Makes a secret with which a browser opens one kind of session. */
export const createClientSecret = defineEndpoint<SecretParts, SecretBody>({
  ...shared,
  path: "/realtime/client_secrets",
  summary: "Make a client secret for realtime sessions.",
  description:
    "The secret opens sessions of one model at GET /realtime and nothing else, until it ends. It belongs to the key that made it, " +
    "whose limits and revocation apply; `limit` bounds it further. A session of the type transcription names its model in " +
    "`audio.input.transcription`.",
  bodyBytesMax: 32 * 1024,
  body: secretBodySchema,
  response: secretSchema,
  handle: (context, dependencies) => answerSecret(context, { dependencies }),
});

/** Makes a secret for sessions that translate. */
export const createTranslationSecret = defineEndpoint<SecretParts, SecretBody>({
  ...shared,
  path: "/realtime/translations/client_secrets",
  summary: "Make a client secret for sessions that translate.",
  description: "As POST /realtime/client_secrets, for sessions at GET /realtime/translations.",
  bodyBytesMax: 32 * 1024,
  body: secretBodySchema,
  response: secretSchema,
  handle: (context, dependencies) => answerSecret(context, { dependencies, work: "translation" }),
});

const legacyBodySchema = z.looseObject({ model: z.string() });

const legacySecretSchema = () =>
  z
    .object({
      value: z.string().describe("The secret, beginning with ek_."),
      expires_at: z.int().describe("When it ends, in Unix seconds."),
    })
    .describe("The secret with which a browser opens the session.");

/** Makes a secret whose session's settings are those of the beta. */
async function issueLegacy(
  context: RequestContext<Readonly<Record<string, unknown>>>,
  { type, dependencies }: { type: "realtime" | "transcription"; dependencies: SecretParts },
): Promise<Record<string, unknown>> {
  const session = { ...gaSettings(context.body), type };
  const made = await issue(context, { session, seconds: defaultSeconds, dependencies });
  const { id, object } = made.session;
  const secret = { value: made.value, expires_at: made.expiresAt };
  return { ...context.body, id, object, client_secret: secret };
}

/** Makes the same in the form of OpenAI's beta. */
export const createRealtimeSession = defineEndpoint<SecretParts, z.infer<typeof legacyBodySchema>>({
  ...shared,
  path: "/realtime/sessions",
  summary: "Make a client secret, in the form of the beta.",
  bodyBytesMax: 32 * 1024,
  body: legacyBodySchema,
  response: () => sessionSchema().extend({ client_secret: legacySecretSchema() }),
  handle: async (context, dependencies) =>
    context.json(await issueLegacy(context, { type: "realtime", dependencies })),
});

const legacyTranscriptionSchema = z.looseObject({
  input_audio_transcription: z
    .looseObject({ model: z.string() })
    .describe("How the sound is transcribed; its model has the surface transcriptions."),
});

/** Makes a secret for sessions of transcripts, in the form of OpenAI's beta. */
export const createTranscriptionSession = defineEndpoint<
  SecretParts,
  z.infer<typeof legacyTranscriptionSchema>
>({
  ...shared,
  path: "/realtime/transcription_sessions",
  summary: "Make a client secret for transcripts, in the form of the beta.",
  description: "As POST /realtime/client_secrets with a session of the type transcription.",
  bodyBytesMax: 32 * 1024,
  body: legacyTranscriptionSchema,
  response: () => sessionSchema().extend({ client_secret: legacySecretSchema() }),
  handle: async (context, dependencies) =>
    context.json(await issueLegacy(context, { type: "transcription", dependencies })),
});

/** What a secret is made for. */
interface NewSecret {
  session: Readonly<Record<string, unknown>>;
  seconds: number;
  /** USD that its sessions may spend; absent where the key's limit alone applies. */
  limit?: number | undefined;
  dependencies: SecretParts;
}

/** Seconds for which a session goes on at most after its secret has ended. */
const sessionSeconds = 3_600;

/** Returns the kind of a session by its settings. */
const workOf = ({ type }: Readonly<Record<string, unknown>>): SessionWork =>
  type === "transcription" || type === "translation" ? type : "responses";

/** Returns the model of a session's settings. Throws `bad_request` where they name none. */
function modelOf(session: Readonly<Record<string, unknown>>): string {
  const transcribes = workOf(session) === "transcription";
  const { transcription } = readSession({ session });
  const model = transcribes ? transcriptionModelOf(transcription) : session["model"];
  if (typeof model === "string" && model !== "") return model;
  const param = transcribes ? transcriptionParam : "session.model";
  throw badField(param, "name the model of the session.");
}

/** Makes a secret once its session was checked as one that begins now. Throws `GatewayError`. */
async function issue(
  context: RequestContext<unknown>,
  { session, seconds, limit, dependencies: { inference, directory, clock, runs } }: NewSecret,
): Promise<{ value: string; expiresAt: number; session: Record<string, unknown> }> {
  const caller = context.caller as LlmKeyCaller;
  const work = workOf(session);
  const model = modelOf(session);
  const origin = originOf(context as RequestContext, { idPrefix: "sess_", body: {}, caller });
  const bound = { inputTokens: 0, maxOutputTokens: 1 };
  const call =
    work === "responses"
      ? realtimeCall(origin, { model, bound })
      : soundCall(origin, { model, work, soundMs: 1_000 });
  await tryOut(inference, call);
  const { clientSecrets } = directory;
  if (clientSecrets === undefined)
    throw new GatewayError("not_configured", "This gateway makes no client secrets.");
  const expiresAtMs = clock.nowMs() + seconds * 1_000;
  const capped =
    limit === undefined
      ? undefined
      : await runs.editor.open(caller, {
          name: `client secret for ${model}`.slice(0, 60),
          limitNano: nanoFromUsd(limit) ?? 0n,
          maxRequests: null,
          maxDepth: 0,
          expiresInMs: (seconds + sessionSeconds) * 1_000,
        });
  const keyId = capped?.run.id ?? caller.key.id;
  const kind = work === "responses" ? "realtime" : work;
  return {
    value: clientSecrets.issue({
      ...{ keyId, model, expiresAtMs, session },
      transcription: transcriptionModelOf(readSession({ session }).transcription),
    }),
    expiresAt: Math.floor(expiresAtMs / 1_000),
    session: {
      type: kind,
      ...session,
      id: `sess_${timeOrderedHex(clock.nowMs())}`,
      object: work === "responses" ? "realtime.session" : `realtime.${work}_session`,
    },
  };
}
