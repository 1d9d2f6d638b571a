import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../../access/define-endpoint.ts";
import { encodeContractError } from "../../../http/error-envelope.ts";
import { lazily } from "../../../http/endpoint.ts";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import { tryOut } from "../../../inference/pipeline/execution.ts";
import { realtimeCall } from "../../../inference/surfaces/realtime/realtime-call.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";
import type { Dependencies } from "../../dependencies.ts";
import { originOf } from "../read-call.ts";

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
      type: z.string().optional(),
      model: z.string().describe("Model of the session; the secret is good for no other."),
    })
    .describe("Settings that the session begins with."),
});

const sessionSchema = () =>
  z.looseObject({ id: z.string(), object: z.literal("realtime.session"), model: z.string() });

const secretSchema = lazily(() =>
  z
    .object({
      value: z.string().describe("The secret, beginning with ek_."),
      expires_at: z.int().describe("When it ends, in Unix seconds."),
      session: sessionSchema().describe("The settings that its session begins with."),
    })
    .meta({ id: "RealtimeClientSecret" }),
);

/** Makes a secret with which a browser opens one kind of session. */
export const createClientSecret = defineEndpoint<
  Pick<Dependencies, "inference" | "directory" | "clock">,
  z.infer<typeof secretBodySchema>
>({
  ...shared,
  path: "/realtime/client_secrets",
  summary: "Make a client secret for realtime sessions.",
  description:
    "The secret opens sessions of one model at GET /realtime and nothing else, until it ends. It belongs to the key that made it, " +
    "whose limits and revocation apply.",
  bodyBytesMax: 32 * 1024,
  body: secretBodySchema,
  response: secretSchema,
  async handle(context, dependencies) {
    const { session, expires_after: { seconds = defaultSeconds } = {} } = context.body;
    const made = await issue(context, { session, seconds, dependencies });
    return context.json({ value: made.value, expires_at: made.expiresAt, session: made.session });
  },
});

const legacyBodySchema = z.looseObject({ model: z.string() });

/** Makes the same in the form of OpenAI's beta. */
export const createRealtimeSession = defineEndpoint<
  Pick<Dependencies, "inference" | "directory" | "clock">,
  z.infer<typeof legacyBodySchema>
>({
  ...shared,
  path: "/realtime/sessions",
  summary: "Make a client secret, in the form of the beta.",
  bodyBytesMax: 32 * 1024,
  body: legacyBodySchema,
  response: () =>
    sessionSchema().extend({
      client_secret: z
        .object({
          value: z.string().describe("The secret, beginning with ek_."),
          expires_at: z.int().describe("When it ends, in Unix seconds."),
        })
        .describe("The secret with which a browser opens the session."),
    }),
  async handle(context, dependencies) {
    const seconds = defaultSeconds;
    const made = await issue(context, { session: context.body, seconds, dependencies });
    const secret = { value: made.value, expires_at: made.expiresAt };
    return context.json({ ...made.session, client_secret: secret });
  },
});

/** Makes a secret once its session was checked as one that begins now. Throws `GatewayError`. */
async function issue(
  context: RequestContext<unknown>,
  {
    session,
    seconds,
    dependencies: { inference, directory, clock },
  }: {
    session: Readonly<Record<string, unknown>> & { model: string };
    seconds: number;
    dependencies: Pick<Dependencies, "inference" | "directory" | "clock">;
  },
): Promise<{ value: string; expiresAt: number; session: Record<string, unknown> }> {
  const caller = context.caller as LlmKeyCaller;
  const { model } = session;
  const origin = originOf(context as RequestContext, { idPrefix: "sess_", body: {}, caller });
  const bound = { inputTokens: 0, maxOutputTokens: 1 };
  await tryOut(inference, realtimeCall(origin, { model, bound }));
  const { clientSecrets } = directory;
  if (clientSecrets === undefined)
    throw new GatewayError("not_configured", "This gateway makes no client secrets.");
  const expiresAtMs = clock.nowMs() + seconds * 1_000;
  const keyId = caller.key.id;
  return {
    value: clientSecrets.issue({ keyId, model, expiresAtMs, session }),
    expiresAt: Math.floor(expiresAtMs / 1_000),
    session: {
      type: "realtime",
      ...session,
      id: `sess_${timeOrderedHex(clock.nowMs())}`,
      object: "realtime.session",
    },
  };
}

/** Refuses calls over WebRTC and SIP, whose sound would not pass through this gateway. */
export const createRealtimeCall = defineEndpoint<unknown>({
  ...shared,
  path: "/realtime/calls",
  summary: "Not offered: calls over WebRTC and SIP.",
  description: "Answers 501. Open a WebSocket at GET /realtime instead.",
  response: () => z.looseObject({}),
  handle() {
    throw new GatewayError(
      "not_configured",
      "Calls over WebRTC and SIP are not offered, since their sound could not be metered. Open a WebSocket at /realtime.",
    );
  },
});

/** Refuses sessions for transcription alone. */
export const createTranscriptionSession = defineEndpoint<unknown>({
  ...shared,
  path: "/realtime/transcription_sessions",
  summary: "Not offered: sessions for transcription alone.",
  description: "Answers 501. Use POST /audio/transcriptions instead.",
  response: () => z.looseObject({}),
  handle() {
    throw new GatewayError(
      "not_configured",
      "Sessions for transcription alone are not offered. Send the sound to POST /audio/transcriptions.",
    );
  },
});
