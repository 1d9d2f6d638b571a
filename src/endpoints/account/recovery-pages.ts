import { z } from "zod";
import { passwordCharactersMin } from "../../account/people/password-length.ts";
import type { People } from "../../account/people/open-people.ts";
import { checkBody } from "../../http/check-body.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { asGatewayError, encodeContractError } from "../../http/error-envelope.ts";
import { formPageHeaders, formPageHtml, type FormPage } from "../../http/form-page.ts";
import { readBodyText } from "../../http/read-body.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { assertSameOrigin } from "../../http/same-origin.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { linkTokenField } from "./password-reset.ts";
import { newPasswordField } from "./people-fields.ts";

const shared = {
  base: "root", access: { open: true }, counting: "at-door", tag: "Signing in", otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
} as const;
const formType = "application/x-www-form-urlencoded";

const page = (context: RequestContext<unknown>, content: FormPage, status = 200): Response =>
  new Response(formPageHtml(content), { status, headers: { ...context.headers, ...formPageHeaders() } });

const resetForm = (token: string): FormPage => ({
  title: "Choose another password",
  sentences: ["Every session of the account ends with it."],
  form: {
    action: "/reset-password", button: "Set it", hidden: { token },
    fields: [{
      name: "password", label: `Password, at least ${passwordCharactersMin} characters`, type: "password", autocomplete: "new-password",
      charactersMin: passwordCharactersMin,
    }],
  },
});
const wasReset: FormPage = { title: "The password is set", sentences: ["Sign in with it. Every other session has ended."] };

const verifyForm = (token: string): FormPage => ({
  title: "Confirm your address", sentences: ["Programs that look at mail open links, too; so it takes this button."],
  form: { action: "/verify-email", button: "Confirm it", hidden: { token }, fields: [] },
});
const wasVerified: FormPage = { title: "The address is confirmed", sentences: ["There is nothing else to do."] };

const tokenOf = ({ query }: RequestContext<unknown>): string => (query.get("token") ?? "").slice(0, 200);

interface Submission<Fields> {
  schema: z.ZodType<Fields>;
  form(token: string): FormPage;
  done: FormPage;
  work(fields: Fields, people: People): Promise<void>;
}

/** Takes what a form sent and shows what became of it. */
async function submit<Fields>(
  context: RequestContext<unknown>, { people, publicUrl }: Dependencies,
  { schema, form, done, work }: Submission<Fields>,
): Promise<Response> {
  const sent = Object.fromEntries(new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax)));
  try {
    assertSameOrigin(context.request, publicUrl());
    await people.throttle.count({ address: context.clientAddress(), purpose: "mail" });
    await work(checkBody(schema, sent), people);
    return page(context, done);
  } catch (thrown) {
    const error = asGatewayError(thrown);
    return page(context, { ...form(sent["token"] ?? ""), problem: error.message }, error.status);
  }
}

/** The page where another password is chosen. Whether its link works is said when it is used, so that nobody can try links here. */
export const resetPasswordPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/reset-password",
  summary: "Show the page that sets another password.",
  query: z.object({ token: z.string().optional() }),
  handle: (context) => page(context, resetForm(tokenOf(context))),
});

const resetSchema = z.object({ token: linkTokenField, password: newPasswordField });

/** Sets another password. */
export const submitPasswordReset = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/reset-password",
  summary: "Set another password with the form of the page.",
  rawBody: resetSchema,
  rawBodyType: formType,
  handle: (context, deps) => submit(context, deps, {
    schema: resetSchema, form: resetForm, done: wasReset, work: ({ token, password }, { recovery }) => recovery.reset(token, password),
  }),
});

/** The page where an address is confirmed. */
export const verifyEmailPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/verify-email",
  summary: "Show the page that confirms an address.",
  query: z.object({ token: z.string().optional() }),
  handle: (context) => page(context, verifyForm(tokenOf(context))),
});

const verifySchema = z.object({ token: linkTokenField });

/** Confirms an address. */
export const submitVerification = defineEndpoint<Dependencies>({
  ...shared,
  method: "POST",
  path: "/verify-email",
  summary: "Confirm an address with the form of the page.",
  rawBody: verifySchema,
  rawBodyType: formType,
  handle: (context, deps) => submit(context, deps, {
    schema: verifySchema, form: verifyForm, done: wasVerified, work: async ({ token }, { recovery, pendingSignUps }) => {
      if (!(await pendingSignUps.confirm(token))) await recovery.verify(token);
    },
  }),
});
