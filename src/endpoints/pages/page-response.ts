import type { RequestContext } from "../../access/define-endpoint.ts";
import { asGatewayError, encodeContractError } from "../../http/error-envelope.ts";
import { passwordCharactersMin } from "../../identity/people/sign-in/password-bounds.ts";
import type { FormField } from "../../pages/forms.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";
import { sessionCookieOf, type SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { assertSameOrigin } from "../../access/admit-session.ts";
import { readBodyText } from "../../http/bodies/read-body.ts";
import { accountBodyBytesMax } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** The declarations that every page for people shares. Its errors are pages too, for browsers. */
export const pageRoute = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Pages",
  otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
} as const;

/** The media type of page forms. */
export const formType = "application/x-www-form-urlencoded";

/** The answer of a page, beside its content. */
interface PageAnswer {
  status?: number;
  /** The values of `Set-Cookie`. */
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

/** Returns the input for an account's e-mail address; fixed where a link names it. */
export const emailInput = (value = "", fixed?: true): FormField => ({
  name: "email",
  label: "E-mail address",
  type: "email",
  autocomplete: "username",
  value,
  ...(fixed ? { fixed } : {}),
});

/** Returns the input for the password of an existing account. */
export const passwordInput = (name = "password", label = "Password"): FormField => ({
  name,
  label,
  type: "password",
  autocomplete: "current-password",
});

/** Returns the input for a new password. */
export const newPasswordInput = (label = "Password"): FormField => ({
  name: "password",
  label,
  type: "password",
  autocomplete: "new-password",
  charactersMin: passwordCharactersMin,
  hint: `At least ${passwordCharactersMin} characters.`,
});

/** The input for the code of a second factor. */
export const codeInput: FormField = {
  name: "code",
  label: "Code",
  type: "text",
  autocomplete: "one-time-code",
  code: true,
};

/** Returns the inputs for a new account. */
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

/** Messages for the reasons with which the sign-in library refuses. */
const refusals: Readonly<Record<string, string>> = {
  invalid_email_or_password: "The e-mail address or the password is wrong.",
  invalid_code: "This code is not valid. Wait for the next one, and check the clock of your phone.",
  invalid_backup_code: "This backup code is not valid, or was used before.",
};

/**
 * Returns what is wrong with a form, for the person who sent it. Bugs of the gateway are thrown
 * again, to be logged.
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

/** Returns the fields of a form. Of several with one name the last counts. */
export const fieldsOf = (form: URLSearchParams): Record<string, string> => Object.fromEntries(form);

/** Returns the code of an authenticator app, or a backup code, which has a dash. */
export const secondFactorOf = (code: string): { code: string } | { backupCode: string } =>
  /^[\d\s]+$/.test(code) ? { code: code.replaceAll(/\s/g, "") } : { backupCode: code };

/** Returns the person of the browser's session; undefined where there is none. */
export function personOf(
  { request }: RequestContext<unknown>,
  { people, clock }: Pick<Dependencies, "people" | "clock">,
): Promise<SessionCaller | undefined> {
  const cookie = sessionCookieOf(request.headers.get("cookie"));
  return cookie === undefined
    ? Promise.resolve(undefined)
    : people.reader.find(cookie, clock.nowMs());
}

/**
 * Redirects within this origin. 303 turns any earlier method into a GET (RFC 9110, section 15.4.4).
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

/** Returns a path with the page to return to; `/` is omitted. */
export const withReturn = (path: string, returnTo: string): string =>
  returnTo === "/"
    ? path
    : `${path}?return_to=${encodeURIComponent(returnTo).replaceAll(/[!'()*~]/g, percentEncoded)}`;

/**
 * Percent-encodes what `encodeURIComponent` leaves and the sign-in library does not accept in an
 * address.
 */
const percentEncoded = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Returns where a person signs in to return to a page of this origin. */
export const signInPath = (returnTo: string): string => withReturn("/sign-in", returnTo);

/** Returns the page to return to that a request or a form names. */
export const returnOf = (parameters: URLSearchParams): string =>
  safeReturn(parameters.get("return_to"));

/** Returns path and query of a request, to return to. */
export function placeOf({ request }: RequestContext<unknown>): string {
  const { url } = request;
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? "/" : url.slice(start);
}

/**
 * Reads a form that a page of this service sent. Throws `forbidden` for forms of other origins
 * (CSRF).
 */
export async function readForm(
  context: RequestContext<unknown>,
  { publicUrl }: Pick<Dependencies, "publicUrl">,
): Promise<URLSearchParams> {
  assertSameOrigin(context.request, publicUrl());
  return new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax));
}

/**
 * Returns the path within this origin that a `return_to` names; `/` for everything else. Browsers
 * treat a path that begins with two slashes, or a slash and a backslash, as another host's.
 */
export function safeReturn(returnTo: string | null): string {
  if (returnTo === null || !/^\/(?![/\\])[^\p{Cc}\\]*$/u.test(returnTo) || returnTo.length > 4_000)
    return "/";
  const base = "http://origin.invalid";
  return URL.canParse(returnTo, base) && new URL(returnTo, base).origin === base ? returnTo : "/";
}
