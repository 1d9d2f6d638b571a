import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, emailField, passwordField } from "../account/account-fields.ts";
import {
  answerWith,
  beginProviderSignIn,
  delegate,
  finishProviderSignIn,
  signInWithPassword,
  signOutOf,
  type SignInDependencies,
  forSigningIn,
} from "./sign-in-flow.ts";

/** A page of this service to return to: a path, or a URL at the public address. */
const returnField = z.string().max(2_000).optional();

const signInSchema = z.object({
  email: emailField,
  password: passwordField,
  remember_me: z.boolean().optional(),
});

/** The signed-in user, as it is returned; the library returns more. */
export const signedInSchema = z.object({
  user: z.object({ id: z.string(), name: z.string(), email: z.string() }),
});

/** Returns a user of the library under this API's field names. */
export const signedIn = (body: unknown): z.infer<typeof signedInSchema> =>
  signedInSchema.parse(body);

/** The answer of a route that returns no data. */
export const successSchema = z.object({ success: z.literal(true) });

const secondFactorSchema = lazily(() =>
  z.object({
    two_factor_required: z.literal(true),
    methods: z.array(z.enum(["totp", "backup_code"])),
  }),
);

export const signInByPassword = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/sign-in/email",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Sign in with e-mail and password.",
  description:
    "Sets the session cookie. If the account has an authenticator app, the answer is two_factor_required instead, and POST " +
    "/api/auth/sign-in/two-factor completes the sign-in. Attempts are limited by network and by account. Browsers and networks from " +
    "which the account has signed in are not affected by other clients' attempts.",
  body: signInSchema,
  response: () => z.union([signedInSchema, secondFactorSchema()]),
  async handle(context, deps: SignInDependencies) {
    const { email, password, remember_me: rememberMe = true } = context.body;
    const { kind, answer } = await signInWithPassword(context, deps, {
      email,
      password,
      rememberMe,
    });
    if (kind === "signed-in") return answerWith(context, answer, signedIn(answer.body));
    return answerWith(context, answer, {
      two_factor_required: true,
      methods: ["totp", "backup_code"],
    });
  },
});

const providerSchema = z.object({
  provider: z.string().min(1).max(100),
  callback_url: returnField,
  error_callback_url: returnField,
});

const providerBody = ({
  provider,
  callback_url: callbackURL,
  error_callback_url: errorCallbackURL,
}: z.infer<typeof providerSchema>) => ({
  provider,
  callbackURL: callbackURL ?? "/",
  ...(errorCallbackURL === undefined ? {} : { errorCallbackURL }),
  disableRedirect: true,
});

const redirectTo = (body: unknown): { url: string } => z.object({ url: z.string() }).parse(body);

/** Starts to sign in at an OIDC provider; the answer says where the browser goes. */
export const signInWithProvider = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/sign-in/social",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Start signing in at an OpenID provider.",
  body: providerSchema,
  response: () => z.object({ url: z.string() }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const {
      provider,
      callback_url: callbackUrl = "/",
      error_callback_url: errorUrl,
    } = context.body;
    const { answer, url } = await beginProviderSignIn(context, deps, {
      provider,
      callbackUrl,
      errorUrl,
    });
    return answerWith(context, answer, { url });
  },
});

/** Handles the browser's return from an OIDC provider. */
export const providerCallback = defineEndpoint({
  ...forSigningIn,
  method: "GET",
  path: "/api/auth/callback/:provider",
  summary: "Complete signing in at an OpenID provider.",
  redirects: true,
  async handle(context, deps: SignInDependencies) {
    return answerWith(
      context,
      await finishProviderSignIn(context, deps, context.param("provider")),
      {},
    );
  },
});

export const linkProvider = defineEndpoint({
  ...forSigningIn,
  access: { session: true },
  tag: "Account",
  method: "POST",
  path: "/api/auth/link-social",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Link an OpenID provider to the account.",
  body: providerSchema,
  response: () => z.object({ url: z.string() }),
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    const answer = await delegate(context, deps, {
      method: "POST",
      path: "/link-social",
      body: providerBody(context.body),
    });
    return answerWith(context, answer, redirectTo(answer.body));
  },
});

/** Ends the session of the cookie, in any state. */
export const signOut = defineEndpoint({
  ...forSigningIn,
  method: "POST",
  path: "/api/auth/sign-out",
  summary: "Sign out.",
  response: () => successSchema,
  async handle(context, deps: Pick<Dependencies, "people" | "publicUrl">) {
    return answerWith(context, await signOutOf(context, deps), { success: true });
  },
});
