import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { assertSameOrigin } from "../../access/admit-session.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { queryOf } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import { clientAddressHeader, identityPath } from "../../identity/people/lazy-identity.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import {
  SignInRefusalError,
  type Attempt,
} from "../../identity/people/sign-in/sign-in-throttle.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** The declarations that routes share whose callers are not signed in yet. */
export const forSigningIn = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Signing in",
  encodeError: encodeContractError,
} as const;

/** What signs people in. */
export type SignInDependencies = Pick<
  Dependencies,
  "operatorWorkspaceId" | "people" | "security" | "clock" | "publicUrl"
>;

/*
 * Functions for signing in and out that both the JSON endpoints and the pages call. Each checks the
 * origin, counts the attempt, calls Better Auth, and records the outcome. Cookies to set are in the
 * answer.
 */

/** The outcome of a sign-in: a session, or a request for the code of a second factor. */
export type SignInOutcome =
  | { kind: "signed-in"; answer: DelegatedAnswer; caller: SessionCaller }
  | { kind: "second-factor"; answer: DelegatedAnswer };

/** The code of an authenticator app, or one of its backup codes. */
export type SecondFactor = { code: string } | { backupCode: string };

/** The cookie that identifies a browser as one that an account was signed in with. */
const deviceCookie = "switchyard.device";
const deviceSeconds = 365 * 86_400;
/** The cookie that names the account whose second factor is awaited. */
const stepCookie = "switchyard.second_step";
const stepSeconds = 600;

/** The library's answer that asks for a second factor in place of a session. */
const challengeSchema = z.object({ twoFactorRedirect: z.literal(true) });

const redirectSchema = z.object({ url: z.string() });

const cookieOf = (context: RequestContext<unknown>, name: string): string | undefined =>
  (context.request.headers.get("cookie") ?? "")
    .split(/;\s*/)
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1) || undefined;

function setCookie(
  { publicUrl }: Pick<Dependencies, "publicUrl">,
  name: string,
  { value, seconds }: { value: string; seconds: number },
): string {
  return `${name}=${value}; Max-Age=${seconds}; Path=/; HttpOnly;${publicUrl().startsWith("https:") ? " Secure;" : ""} SameSite=Lax`;
}

/** Returns the attempt of a request, as it is counted. */
export const attemptOf = (context: RequestContext<unknown>, email?: string): Attempt => ({
  address: context.clientAddress(),
  device: cookieOf(context, deviceCookie),
  email,
});

/** Signs in with e-mail and password. Throws the library's refusals, and `rate_limit_exceeded`. */
export async function signInWithPassword(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  { email, password, rememberMe = true }: { email: string; password: string; rememberMe?: boolean },
): Promise<SignInOutcome> {
  const by: Way = { action: "sign-in: password", email };
  const answer = await attempt(context, deps, {
    by,
    path: "/sign-in/email",
    body: { email, password, rememberMe },
    before: () => deps.people.passwords.assertRoom(),
  });
  if (!challengeSchema.safeParse(answer.body).success)
    return succeeded(context, deps, { by, answer });
  const step = setCookie(deps, stepCookie, { value: sealed(deps, email), seconds: stepSeconds });
  return { kind: "second-factor", answer: { ...answer, cookies: [...answer.cookies, step] } };
}

/** Signs in with the second factor, after the password in the same browser. */
export async function signInWithSecondFactor(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  factor: SecondFactor,
): Promise<SignInOutcome & { kind: "signed-in" }> {
  const email = unsealed(deps, cookieOf(context, stepCookie));
  if (email === undefined)
    throw new GatewayError(
      "authentication_required",
      "Begin with e-mail and password; that step has ended.",
    );
  const app = "code" in factor;
  const by: Way = { action: app ? "sign-in: code of an app" : "sign-in: backup code", email };
  const answer = await attempt(context, deps, {
    by,
    path: app ? "/two-factor/verify-totp" : "/two-factor/verify-backup-code",
    body: { code: app ? factor.code : factor.backupCode },
    withoutSession: true,
  });
  const outcome = await succeeded(context, deps, { by, answer });
  if (app) await assertFirstUse(deps, { caller: outcome.caller, code: factor.code });
  const ended = setCookie(deps, stepCookie, { value: "", seconds: 0 });
  return { ...outcome, answer: { ...outcome.answer, cookies: [...outcome.answer.cookies, ended] } };
}

/** Signs in with a browser's answer to the options of a passkey. */
export async function signInWithPasskeyAnswer(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  body: Readonly<Record<string, unknown>>,
): Promise<SignInOutcome & { kind: "signed-in" }> {
  const by: Way = { action: "sign-in: passkey" };
  const answer = await attempt(context, deps, { by, path: "/passkey/verify-authentication", body });
  return succeeded(context, deps, { by, answer });
}

/**
 * Handles the return from an OpenID provider. The answer redirects the browser, with a session
 * where that provider proved the person's identity.
 */
export async function finishProviderSignIn(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  provider: string,
): Promise<DelegatedAnswer> {
  const by: Way = { action: `sign-in: provider ${provider}` };
  const answer = await delegate(context, deps, {
    method: "GET",
    path: `/callback/${encodeURIComponent(provider)}`,
  });
  if (sessionCookieIn(answer) !== undefined)
    return (await succeeded(context, deps, { by, answer })).answer;
  // Linking a provider returns here too, without a new session.
  if (answer.location?.includes("error=") !== true) return answer;
  // Repeated attempts for one address do not fill the log.
  await deps.people.throttle.count({ address: context.clientAddress(), purpose: "provider" });
  await writeDown(context, deps, { ...by, status: 401 });
  return answer;
}

/** Ends the session of the cookie, in any state. */
export const signOutOf = (
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "publicUrl">,
): Promise<DelegatedAnswer> =>
  delegate(context, deps, { method: "POST", path: "/sign-out", body: {} });

/**
 * Returns the address of the account whose password was entered in this browser and whose second
 * factor is missing; undefined without one.
 */
export const pendingSecondFactor = (
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "clock">,
): string | undefined => unsealed(deps, cookieOf(context, stepCookie));

/**
 * Starts to sign in at an OpenID provider: returns the address for the browser, with the cookies of
 * this attempt.
 */
export async function beginProviderSignIn(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "publicUrl">,
  {
    provider,
    callbackUrl,
    errorUrl,
  }: { provider: string; callbackUrl: string; errorUrl?: string | undefined },
): Promise<{ url: string; answer: DelegatedAnswer }> {
  assertSameOrigin(context.request, deps.publicUrl());
  await deps.people.throttle.count({ address: context.clientAddress() });
  const answer = await delegate(context, deps, {
    method: "POST",
    path: "/sign-in/social",
    body: {
      provider,
      callbackURL: callbackUrl,
      disableRedirect: true,
      ...(errorUrl === undefined ? {} : { errorCallbackURL: errorUrl }),
    },
  });
  return { answer, url: redirectSchema.parse(answer.body).url };
}

/** The way of signing in, as the audit log names it. */
interface Way {
  action: string;
  email?: string;
}

async function attempt(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "operatorWorkspaceId" | "people" | "security" | "publicUrl">,
  { by, before, ...delegated }: { by: Way; before?(): void } & Omit<Delegated, "method">,
): Promise<DelegatedAnswer> {
  assertSameOrigin(context.request, deps.publicUrl());
  try {
    await deps.people.throttle.count(attemptOf(context, by.email));
    before?.();
    return await delegate(context, deps, { method: "POST", ...delegated });
  } catch (error) {
    const isRecorded =
      error instanceof GatewayError &&
      (error instanceof SignInRefusalError ? error.isFirst : error.status < 500);
    if (isRecorded) await writeDown(context, deps, { ...by, status: error.status });
    throw error;
  }
}

async function succeeded(
  context: RequestContext<unknown>,
  deps: SignInDependencies,
  { by, answer }: { by: Way; answer: DelegatedAnswer },
): Promise<SignInOutcome & { kind: "signed-in" }> {
  const { people, clock } = deps;
  const cookie = sessionCookieIn(answer);
  const caller = cookie === undefined ? undefined : await people.reader.find(cookie, clock.nowMs());
  if (caller === undefined)
    throw new GatewayError("internal_server_error", "Signing in failed on our side. Try again.");
  const { email } = caller.user;
  await people.throttle.succeeded({ ...attemptOf(context), email });
  await writeDown(context, deps, { ...by, email, status: 200 });
  const device = setCookie(deps, deviceCookie, {
    value: people.throttle.newDevice(email),
    seconds: deviceSeconds,
  });
  return { kind: "signed-in", caller, answer: { ...answer, cookies: [...answer.cookies, device] } };
}

/** Returns the session cookie that an answer sets, unless it deletes it. */
function sessionCookieIn({ cookies }: DelegatedAnswer): string | undefined {
  const line = cookies.find(
    (each) => each.startsWith(`${brand.sessionCookie}=`) && !/max-age=0/i.test(each),
  );
  return line?.slice(brand.sessionCookie.length + 1).split(";")[0] || undefined;
}

/** Throws for a code that was used before, so that one which was observed is useless. */
async function assertFirstUse(
  { people }: Pick<Dependencies, "people">,
  { caller: { user, session }, code }: { caller: SessionCaller; code: string },
): Promise<void> {
  if (await people.throttle.isFirstUse({ userId: user.id, code })) return;
  await people.sessions.revoke({ userId: user.id, id: session.id });
  throw new GatewayError(
    "authentication_required",
    "This code was used already. Wait for the next one.",
  );
}

/**
 * Audits an attempt in the account's workspace, or in the operator's where the address has no
 * account.
 */
async function writeDown(
  context: RequestContext<unknown>,
  {
    people,
    security,
    operatorWorkspaceId,
  }: Pick<Dependencies, "operatorWorkspaceId" | "people" | "security">,
  { action, email, status }: Way & { status: number },
): Promise<void> {
  const account = email === undefined ? undefined : await people.users.accountOf(email);
  const actor =
    account === undefined
      ? { kind: "anonymous", id: "", label: email ?? "" }
      : { kind: "user", id: account.id, label: account.email };
  await security.auditLog
    .tell(
      {
        workspaceId: account?.workspaceId ?? operatorWorkspaceId,
        actor,
        address: context.clientAddress(),
        action,
        target: account?.id ?? null,
        fields: [],
      },
      { status, target: null },
    )
    .catch((error: unknown) =>
      people.log(
        "error",
        `a sign-in could not be written to the audit log: ${error instanceof Error ? error.message : String(error)}`,
      ),
    );
}

const sealOf = ({ people }: Pick<Dependencies, "people">, text: string): string =>
  createHmac("sha256", people.secret).update(`second step ${text}`).digest("base64url");

function sealed(deps: Pick<Dependencies, "people" | "clock">, email: string): string {
  const text = `${Buffer.from(email).toString("base64url")}.${Math.floor(deps.clock.nowMs() / 1000) + stepSeconds}`;
  return `${text}.${sealOf(deps, text)}`;
}

/**
 * Returns the e-mail of the account whose second factor is awaited; undefined where the password
 * was not entered, or too long ago.
 */
function unsealed(
  deps: Pick<Dependencies, "people" | "clock">,
  cookie: string | undefined,
): string | undefined {
  const [email = "", ends = "", seal = ""] = cookie?.split(".") ?? [];
  const [expected, given] = [Buffer.from(sealOf(deps, `${email}.${ends}`)), Buffer.from(seal)];
  const holds =
    expected.length === given.length &&
    timingSafeEqual(expected, given) &&
    Number(ends) * 1000 > deps.clock.nowMs();
  return holds ? Buffer.from(email, "base64url").toString() : undefined;
}

/** A request of a route to the sign-in library. */
export interface Delegated {
  method: "GET" | "POST";
  /** The path below `identityPath`. */
  path: string;
  body?: Readonly<Record<string, unknown>>;
  /** The client's name of the field with the present password. Default: password. */
  passwordParam?: string;
  /** Whether the browser's session is hidden from the library, which is to start one. */
  withoutSession?: boolean;
}

/** The library's answer: its cookies, its redirect, and its JSON. */
export interface DelegatedAnswer {
  status: number;
  cookies: readonly string[];
  location: string | null;
  body: unknown;
}

const passedOn = [
  "cookie",
  "user-agent",
  "accept-language",
  "sec-fetch-site",
  "sec-fetch-mode",
  "sec-fetch-dest",
] as const;

const codes: Readonly<Partial<Record<number, ErrorCode>>> = {
  400: "bad_request",
  401: "authentication_required",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  415: "bad_request",
  422: "unprocessable_entity",
  429: "rate_limit_exceeded",
};

const refusalSchema = z
  .object({ message: z.string().optional(), code: z.string().optional() })
  .catch({});

/**
 * Calls the library as the browser would have. Throws `GatewayError` where the library refuses, and
 * for pages of other origins.
 */
export async function delegate(
  context: RequestContext<unknown>,
  { people: { identity }, publicUrl }: Pick<Dependencies, "people" | "publicUrl">,
  { method, path, body, passwordParam = "password", withoutSession = false }: Delegated,
): Promise<DelegatedAnswer> {
  const { request } = context;
  assertSameOrigin(request, publicUrl());
  const query = method === "GET" ? queryOf(request).toString() : "";
  const answer = await identity.handle(
    new Request(`${publicUrl()}${identityPath}${path}${query === "" ? "" : `?${query}`}`, {
      method,
      headers: headersFor(context, publicUrl(), withoutSession),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const text = await answer.text();
  const parsed: unknown =
    answer.headers.get("content-type")?.startsWith("application/json") && text !== ""
      ? JSON.parse(text)
      : null;
  if (answer.status >= 400) throw refusalOf(answer.status, parsed, passwordParam);
  return {
    status: answer.status,
    cookies: answer.headers.getSetCookie(),
    location: answer.headers.get("location"),
    body: parsed,
  };
}

const withoutSessionCookie = (cookies: string): string =>
  cookies
    .split(/;\s*/)
    .filter((pair) => !pair.startsWith(`${brand.sessionCookie}=`))
    .join("; ");

/**
 * Returns the headers for the library. The guard has checked the origin, so it is set to this
 * service's, and the address to the one that this gateway saw.
 */
function headersFor(
  context: RequestContext<unknown>,
  publicUrl: string,
  withoutSession: boolean,
): Headers {
  const headers = new Headers({
    "content-type": "application/json",
    origin: new URL(publicUrl).origin,
  });
  for (const name of passedOn) {
    const value = context.request.headers.get(name);
    if (value !== null)
      headers.set(name, name === "cookie" && withoutSession ? withoutSessionCookie(value) : value);
  }
  headers.set(clientAddressHeader, context.clientAddress());
  return headers;
}

function refusalOf(status: number, body: unknown, passwordParam: string): GatewayError {
  const { message, code } = refusalSchema.parse(body);
  // 2026-11: the library answers 500 to invalid credentials from a browser.
  const known = code === "FAILED_TO_VERIFY_REGISTRATION" ? "bad_request" : codes[status];
  if (known === undefined) {
    return new GatewayError(
      "internal_server_error",
      "Signing in failed on our side. Quote the trace id when you report it.",
    );
  }
  const metadata = code === undefined ? {} : { reason: code.toLowerCase() };
  return new GatewayError(known, message ?? "Signing in was refused.", {
    metadata,
    ...(code === "INVALID_PASSWORD" && { param: passwordParam }),
  });
}

/**
 * Returns the answer to the browser with what the library set. Of secrets it contains only the
 * cookie.
 */
export function answerWith(
  context: RequestContext<unknown>,
  { cookies, location, status }: DelegatedAnswer,
  body: unknown,
): Reply {
  const redirects = location !== null && status >= 300;
  if (redirects)
    return new Reply("", { status, headers: { ...context.headers, location }, cookies });
  const headers = {
    "content-type": "application/json",
    ...context.headers,
    "cache-control": "no-store",
  };
  return new Reply(JSON.stringify(body), { headers, cookies });
}
