import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, nameField, plainText, sessionOf } from "../account/account-fields.ts";
import { answerWith, delegate, forSigningIn, signInWithPasskeyAnswer } from "./sign-in-flow.ts";
import { successSchema } from "./sign-in.ts";

const signedIn = { ...forSigningIn, access: { session: true }, tag: "Account" } as const;

/**
 * The JSON that the browser's WebAuthn returns (Web Authentication Level 3, section 5.1.8); the
 * library checks it.
 */
const credentialField = z.looseObject({ id: z.string() });

const passkeySchema = z.object({
  id: z.string(),
  name: z.string().nullish(),
  deviceType: z.string(),
  backedUp: z.boolean(),
  createdAt: z.coerce.date().nullish(),
});

const passkeyObjectSchema = lazily(() =>
  z.object({
    id: z.string(),
    object: z.literal("passkey"),
    name: z.string().nullable(),
    device_type: z.string(),
    backed_up: z.boolean(),
    created_at: z.string().nullable(),
  }),
);

const passkeyObject = (
  passkey: z.infer<typeof passkeySchema>,
): AnswerOf<typeof passkeyObjectSchema> => ({
  id: passkey.id,
  object: "passkey",
  name: passkey.name ?? null,
  device_type: passkey.deviceType,
  backed_up: passkey.backedUp,
  created_at: passkey.createdAt?.toISOString() ?? null,
});

/** The options of a browser's WebAuthn call (Web Authentication Level 3, sections 5.4 and 5.5). */
const optionsSchema = z.looseObject({ challenge: z.string() });

export const passkeyRegistrationOptions = defineEndpoint({
  ...signedIn,
  method: "GET",
  path: "/api/auth/passkey/generate-register-options",
  summary: "Start adding a passkey.",
  response: () => optionsSchema,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await delegate(context, deps, {
      method: "GET",
      path: "/passkey/generate-register-options",
    });
    return answerWith(context, answer, answer.body);
  },
});

const registrationSchema = z.object({ response: credentialField, name: nameField.optional() });

/** Adds the passkey that a browser created. */
export const addPasskey = defineEndpoint({
  ...signedIn,
  method: "POST",
  path: "/api/auth/passkey/verify-registration",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Add a passkey.",
  body: registrationSchema,
  response: passkeyObjectSchema,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await delegate(context, deps, {
      method: "POST",
      path: "/passkey/verify-registration",
      body: context.body,
    });
    return answerWith(context, answer, passkeyObject(passkeySchema.parse(answer.body)));
  },
});

export const passkeySignInOptions = defineEndpoint({
  ...forSigningIn,
  method: "GET",
  path: "/api/auth/passkey/generate-authenticate-options",
  summary: "Start signing in with a passkey.",
  response: () => optionsSchema,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    await deps.people.throttle.count({ address: context.clientAddress() });
    const answer = await delegate(context, deps, {
      method: "GET",
      path: "/passkey/generate-authenticate-options",
    });
    return answerWith(context, answer, answer.body);
  },
});

const assertionSchema = z.object({ response: credentialField });

export const signInWithPasskey = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/passkey/verify-authentication",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Sign in with a passkey.",
  body: assertionSchema,
  response: () => successSchema,
  async handle(
    context,
    deps: Pick<Dependencies, "operatorWorkspaceId" | "people" | "security" | "clock" | "publicUrl">,
  ) {
    const { answer } = await signInWithPasskeyAnswer(context, deps, context.body);
    return answerWith(context, answer, { success: true });
  },
});

export const listPasskeys = defineEndpoint({
  ...signedIn,
  method: "GET",
  path: "/api/auth/passkey/list-user-passkeys",
  summary: "List the passkeys of the account.",
  response: () => z.object({ object: z.literal("list"), data: z.array(passkeyObjectSchema()) }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await delegate(context, deps, {
      method: "GET",
      path: "/passkey/list-user-passkeys",
    });
    return answerWith(context, answer, {
      object: "list",
      data: z.array(passkeySchema).parse(answer.body).map(passkeyObject),
    });
  },
});

const deletionSchema = z.object({ id: plainText(200).min(1) });

export const deletePasskey = defineEndpoint({
  ...signedIn,
  method: "POST",
  path: "/api/auth/passkey/delete-passkey",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Delete a passkey of the account.",
  body: deletionSchema,
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Pick<Dependencies, "people">) {
    const { users, settings } = deps.people;
    const { id } = context.body;
    await users.unlink({
      userId: sessionOf(context).user.id,
      id,
      providers: settings.oidc.map((provider) => provider.id),
    });
    return context.json({ deleted: true, id });
  },
});
