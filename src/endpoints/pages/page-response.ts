import type { RequestContext } from "../../access/define-endpoint.ts";
import { asGatewayError, encodeContractError } from "../../http/error-envelope.ts";
import { passwordCharactersMin } from "../../identity/people/passwords.ts";
import type { FormField } from "../../pages/forms.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";

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
