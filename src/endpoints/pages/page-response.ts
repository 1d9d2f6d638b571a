import type { RequestContext } from "../../access/define-endpoint.ts";
import { asGatewayError, encodeContractError } from "../../http/error-envelope.ts";
import { passwordCharactersMin } from "../../identity/people/passwords.ts";
import type { FormField } from "../../pages/forms.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";
import { sessionCookieOf, type SessionCaller } from "../../identity/people/sessions.ts";
import { assertSameOrigin } from "../../access/admit-session.ts";
import { readBodyText } from "../../http/read-body.ts";
import { accountBodyBytesMax } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** What every page for people declares; its errors are pages too, where a browser asks. */
export const pageRoute = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Pages",
  otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
} as const;

/** How forms of pages are sent. */
export const formType = "application/x-www-form-urlencoded";

/** What a page is answered with beside its content. */
interface PageAnswer {
  status?: number;
  /** Values of `Set-Cookie`. */
  cookies?: readonly string[];
  /** Further headers. */
  headers?: Readonly<Record<string, string>>;
}

/** Answers with a page. */
export function pageResponse(
  context: RequestContext<unknown>,
  page: Page,
  { status = 200, cookies = [], headers = {} }: PageAnswer = {},
): Response {
  const all = new Headers({ ...context.headers, ...headers, ...pageHeaders(page) });
  for (const cookie of cookies) all.append("set-cookie", cookie);
  return new Response(pageHtml(page), { status, headers: all });
}

/** The e-mail address of an account; fixed where a link names it. */
export const emailInput = (value = "", fixed?: true): FormField => ({
  name: "email",
  label: "E-mail address",
  type: "email",
  autocomplete: "username",
  value,
  ...(fixed ? { fixed } : {}),
});

/** The password of an account that exists. */
export const passwordInput = (name = "password", label = "Password"): FormField => ({
  name,
  label,
  type: "password",
  autocomplete: "current-password",
});

/** A password to be set. */
export const newPasswordInput = (label = "Password"): FormField => ({
  name: "password",
  label,
  type: "password",
  autocomplete: "new-password",
  charactersMin: passwordCharactersMin,
  hint: `At least ${passwordCharactersMin} characters.`,
});

/** The code of a second factor. */
export const codeInput: FormField = {
  name: "code",
  label: "Code",
  type: "text",
  autocomplete: "one-time-code",
  code: true,
};

/** What a new account is made of. */
export const personInputs = ({
  name = "",
  email = "",
  fixedEmail,
}: {
  name?: string;
  email?: string;
  fixedEmail?: true;
}): FormField[] => [
  { name: "name", label: "Your name", type: "text", autocomplete: "name", value: name },
  emailInput(email, fixedEmail),
  newPasswordInput(),
];

const labels: Readonly<Record<string, string>> = {
  name: "Your name",
  email: "The e-mail address",
  password: "The password",
  current_password: "The password",
  code: "The code",
  token: "The link",
};

/** What the library for signing in refuses with, by its reason, in our words. */
const refusals: Readonly<Record<string, string>> = {
  invalid_email_or_password: "The e-mail address or the password is wrong.",
  invalid_code: "This code is not valid. Wait for the next one, and check the clock of your phone.",
  invalid_backup_code: "This backup code is not valid, or was used before.",
};

/**
 * What is wrong with a form, for the person who sent it. Mistakes of the gateway itself are thrown
 * on, to be logged.
 */
export function problemOf(thrown: unknown): { problem: string; status: number } {
  const { code, message, param = "", metadata, status } = asGatewayError(thrown);
  if (code === "internal_server_error") throw thrown;
  const reason = metadata?.["reason"];
  const known = typeof reason === "string" ? refusals[reason] : undefined;
  const label = labels[param];
  if (known !== undefined || label === undefined || !message.startsWith(`${param}: `))
    return { problem: known ?? message, status };
  const said = `${label} ${message.slice(param.length + 2)}`;
  return { problem: said.endsWith(".") ? said : `${said}.`, status };
}

/** The fields of a form; of several with one name the last counts. */
export const fieldsOf = (form: URLSearchParams): Record<string, string> => Object.fromEntries(form);

/** The code of an authenticator app, or a backup code, which has a dash. */
export const secondFactorOf = (code: string): { code: string } | { backupCode: string } =>
  /^[\d\s]+$/.test(code) ? { code: code.replaceAll(/\s/g, "") } : { backupCode: code };

/** The person whose session the browser carries; undefined where there is no session. */
export function personOf(
  { request }: RequestContext<unknown>,
  { people, clock }: Dependencies,
): Promise<SessionCaller | undefined> {
  const cookie = sessionCookieOf(request.headers.get("cookie"));
  return cookie === undefined
    ? Promise.resolve(undefined)
    : people.reader.find(cookie, clock.nowMs());
}

/**
 * A redirect within this origin. 303 makes a GET of any method before (RFC 9110, section
 * 15.4.4).
 */
export function redirect(
  context: RequestContext<unknown>,
  location: string,
  cookies: readonly string[] = [],
): Response {
  const headers = new Headers({
    ...context.headers,
    location,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
  });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}

/** A path with the page to come back to afterwards; `/` needs no mention. */
export const withReturn = (path: string, returnTo: string): string =>
  returnTo === "/"
    ? path
    : `${path}?return_to=${encodeURIComponent(returnTo).replaceAll(/[!'()*~]/g, percentEncoded)}`;

/** What `encodeURIComponent` leaves as it is and the library for signing in takes in no address. */
const percentEncoded = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Where a person signs in to come back to a page of this origin. */
export const signInPath = (returnTo: string): string => withReturn("/sign-in", returnTo);

/** The page to come back to that a request or a form names. */
export const returnOf = (parameters: URLSearchParams): string =>
  safeReturn(parameters.get("return_to"));

/** Path and query of a request, to come back to. */
export function placeOf({ request }: RequestContext<unknown>): string {
  const { url } = request;
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? "/" : url.slice(start);
}

/** The form that a page of ours sent. Throws `forbidden` for forms of other origins (CSRF). */
export async function readForm(
  context: RequestContext<unknown>,
  { publicUrl }: Pick<Dependencies, "publicUrl">,
): Promise<URLSearchParams> {
  assertSameOrigin(context.request, publicUrl());
  return new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax));
}

/**
 * A place within this origin that a `return_to` names; `/` for everything else. A path that begins
 * with two slashes, or a slash and a backslash, is another host's to a browser.
 */
export function safeReturn(returnTo: string | null): string {
  if (returnTo === null || !/^\/(?![/\\])[^\p{Cc}\\]*$/u.test(returnTo) || returnTo.length > 4_000)
    return "/";
  const base = "http://origin.invalid";
  return URL.canParse(returnTo, base) && new URL(returnTo, base).origin === base ? returnTo : "/";
}
