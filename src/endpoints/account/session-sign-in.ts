import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { emailField, passwordField } from "./people-fields.ts";
import { answerWith, delegate } from "./session-delegate.ts";
import {
  beginProviderSignIn,
  finishProviderSignIn,
  signInWithPassword,
  signOutOf,
} from "./sign-in-flow.ts";

const shared = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Signing in",
  encodeError: encodeContractError,
} as const;

/** A page of ours to come back to: a path, or a URL at the public one. */
const returnField = z.string().max(2_000).optional();

const signInSchema = z.object({
  email: emailField,
  password: passwordField,
  remember_me: z.boolean().optional(),
});

/** Who has signed in, as it is answered; the library tells more. */
export const signedInSchema = z.object({
  user: z.object({ id: z.string(), name: z.string(), email: z.string() }),
});

/** What the library tells of a user, in our spelling. */
export const signedIn = (body: unknown): z.infer<typeof signedInSchema> =>
  signedInSchema.parse(body);

/** The answer where there is nothing to tell. */
export const successSchema = z.object({ success: z.literal(true) });

const secondFactorSchema = z.object({
  two_factor_required: z.literal(true),
  methods: z.array(z.enum(["totp", "backup_code"])),
});

/** Begins a session with e-mail and password. */
export const signInByPassword = defineEndpoint<Dependencies, z.infer<typeof signInSchema>>({
  ...shared,
  method: "POST",
  path: "/api/auth/sign-in/email",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Sign in with e-mail and password.",
  description:
    "Sets the session's cookie. Where the account has an authenticator app there is no session yet: two_factor_required says " +
    "so, and POST /api/auth/sign-in/two-factor goes on. Attempts are limited by network and by account; browsers and networks that " +
    "the account was signed in from are not kept out by what others try.",
  body: signInSchema,
  response: z.union([signedInSchema, secondFactorSchema]),
  async handle(context, deps) {
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

/** Begins to sign in at an OIDC provider; the answer says where the browser goes. */
export const signInWithProvider = defineEndpoint<Dependencies, z.infer<typeof providerSchema>>({
  ...shared,
  method: "POST",
  path: "/api/auth/sign-in/social",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Sign in at an OpenID provider of the configuration.",
  body: providerSchema,
  response: z.object({ url: z.string() }),
  async handle(context, deps) {
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

/** Where an OIDC provider sends the browser back to. */
export const providerCallback = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/api/auth/callback/:provider",
  summary: "Come back from an OpenID provider.",
  redirects: true,
  async handle(context, deps) {
    return answerWith(
      context,
      await finishProviderSignIn(context, deps, context.param("provider")),
      {},
    );
  },
});

/** Lets somebody who has signed in sign in at a provider from now on, too. */
export const linkProvider = defineEndpoint<Dependencies, z.infer<typeof providerSchema>>({
  ...shared,
  access: { session: true },
  tag: "Account",
  method: "POST",
  path: "/api/auth/link-social",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Link an OpenID provider to the account.",
  body: providerSchema,
  response: z.object({ url: z.string() }),
  async handle(context, deps) {
    const answer = await delegate(context, deps, {
      method: "POST",
      path: "/link-social",
      body: providerBody(context.body),
    });
    return answerWith(context, answer, redirectTo(answer.body));
  },
});

/** Ends the session of the cookie, whatever its state. */
export const signOut = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/api/auth/sign-out",
  summary: "Sign out.",
  response: successSchema,
  async handle(context, deps) {
    return answerWith(context, await signOutOf(context, deps), { success: true });
  },
});
