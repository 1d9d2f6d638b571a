import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  atMost,
  forSessions,
  passwordField,
  sessionOf,
} from "../account/account-fields.ts";
import {
  answerWith,
  attemptOf,
  delegate,
  signInWithSecondFactor,
  type Delegated,
  type DelegatedAnswer,
} from "./sign-in-flow.ts";
import { signedIn, signedInSchema } from "./sign-in.ts";

const shared = { ...forSessions, base: "root", anywhere: true } as const;

const codeField = z
  .string("is required and must be a text")
  .trim()
  .min(1, "is required")
  .max(...atMost(50));

const factorSchema = z
  .strictObject({ code: codeField.optional(), backup_code: codeField.optional() })
  .refine(
    ({ code, backup_code: backupCode }) => (code === undefined) !== (backupCode === undefined),
    {
      message: "either code or backup_code is required",
      path: ["code"],
    },
  );

/** Takes the second factor after the password, and starts the session. */
export const signInWithCode = defineEndpoint({
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Signing in",
  encodeError: encodeContractError,
  method: "POST",
  path: "/api/auth/sign-in/two-factor",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Submit the second factor after the password.",
  description:
    "code is from the authenticator app; backup_code is one of the backup codes. Each works once. The request belongs to the cookie " +
    "that the answer to the password has set, which is valid for ten minutes.",
  body: factorSchema,
  response: () => signedInSchema,
  async handle(
    context,
    deps: Pick<Dependencies, "operatorWorkspaceId" | "people" | "security" | "clock" | "publicUrl">,
  ) {
    const { code = "", backup_code: backupCode } = context.body;
    const { answer } = await signInWithSecondFactor(
      context,
      deps,
      backupCode === undefined ? { code } : { backupCode },
    );
    return answerWith(context, answer, signedIn(answer.body));
  },
});

/** Makes a request for the account to the library, counted as an attempt to prove its ownership. */
async function counted(
  context: RequestContext<unknown, SessionCaller>,
  deps: Pick<Dependencies, "people" | "publicUrl">,
  delegated: Omit<Delegated, "method">,
): Promise<DelegatedAnswer> {
  const attempt = { ...attemptOf(context), email: sessionOf(context).user.email };
  await deps.people.throttle.count(attempt);
  deps.people.passwords.assertRoom();
  const answer = await delegate(context, deps, { method: "POST", ...delegated });
  await deps.people.throttle.succeeded(attempt);
  return answer;
}

const passwordSchema = z.strictObject({
  password: passwordField.optional().describe("Current password of the account, if it has one."),
});

const setUpSchema = z.object({ totpURI: z.string(), backupCodes: z.array(z.string()) });

/** Starts to set up an authenticator app, which is in force once a code of it was entered. */
export const beginTwoFactor = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/api/auth/two-factor/enable",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Start setting up an authenticator app.",
  description:
    "Returns the URI for the app, to show as a QR code or to type. Two-factor sign-in begins when POST /api/auth/two-factor/confirm " +
    "receives a code of the app. The backup codes are shown once; each works once in place of the app.",
  body: passwordSchema,
  response: () => z.object({ totp_uri: z.string(), backup_codes: z.array(z.string()) }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await counted(context, deps, { path: "/two-factor/enable", body: context.body });
    const { totpURI, backupCodes } = setUpSchema.parse(answer.body);
    return answerWith(context, answer, { totp_uri: totpURI, backup_codes: backupCodes });
  },
});

const confirmSchema = z.strictObject({ code: codeField });

export const confirmTwoFactor = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/api/auth/two-factor/confirm",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Finish setting up an authenticator app.",
  description:
    "From now on, signing in with the password requires a code of the app. Passkeys and OpenID providers need no code: they are " +
    "second factors of their own.",
  body: confirmSchema,
  response: () => z.object({ two_factor: z.literal(true) }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await counted(context, deps, {
      path: "/two-factor/verify-totp",
      body: context.body,
    });
    return answerWith(context, answer, { two_factor: true });
  },
});

export const renewBackupCodes = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/api/auth/two-factor/backup-codes",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Replace the backup codes.",
  body: passwordSchema,
  response: () => z.object({ backup_codes: z.array(z.string()) }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await counted(context, deps, {
      path: "/two-factor/generate-backup-codes",
      body: context.body,
    });
    return answerWith(context, answer, {
      backup_codes: setUpSchema.pick({ backupCodes: true }).parse(answer.body).backupCodes,
    });
  },
});

export const endTwoFactor = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/api/auth/two-factor/disable",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Remove the authenticator app.",
  body: passwordSchema,
  response: () => z.object({ two_factor: z.literal(false) }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await counted(context, deps, {
      path: "/two-factor/disable",
      body: context.body,
    });
    return answerWith(context, answer, { two_factor: false });
  },
});
