import { z } from "zod";
import { pkcePattern, type ChallengeMethod } from "../../consent/authorization-codes.ts";
import { callbackWith, isLoopback, readCallbackUrl } from "../../consent/oauth-clients.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { messagePage } from "../../pages/message-page.ts";
import { nanoFromUsd } from "../../platform/kernel/money.ts";
import { momentField, momentMs, plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  pageResponse,
  personOf,
  placeOf,
  readForm,
  redirect,
  signInPath,
  pageRoute,
} from "../pages/page-response.ts";
import { askConsent, readDecision, type Asked, type ConsentText } from "./consent-form.ts";

const parametersSchema = z.object({
  callback_url: z
    .string()
    .max(2_000)
    .describe("Redirect address of the code: https, or http on a loopback address."),
  code_challenge: z.string().regex(pkcePattern).describe("PKCE challenge (RFC 7636)."),
  code_challenge_method: z.enum(["S256", "plain"]).default("S256"),
  key_label: plainText(200).trim().optional(),
  limit: z.coerce
    .number()
    .nonnegative()
    .max(9_000_000)
    .optional()
    .describe("Spending cap that the app requests, in USD."),
  usage_limit_type: z.enum(["daily", "weekly", "monthly"]).optional(),
  expires_at: momentField.optional(),
  state: z.string().max(1_000).optional().describe("Returned with the code, unchanged."),
});

type Parameters = z.infer<typeof parametersSchema>;

/**
 * A parsed request of an app. A problem is shown to the person, since no callback is trusted with
 * it.
 */
type Request =
  | { url: URL; parameters: Parameters; kept: Record<string, string> }
  | { problem: string };

function readRequest(query: URLSearchParams, nowMs: number): Request {
  const kept = Object.fromEntries(
    [...query].filter(([name, value]) => name in parametersSchema.shape && value !== ""),
  );
  const parsed = parametersSchema.safeParse(kept);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `The parameter ${String(issue?.path[0])} is missing or not valid.` };
  }
  const callback = readCallbackUrl(parsed.data.callback_url);
  if ("problem" in callback) return { problem: `The parameter callback_url ${callback.problem}.` };
  const expiresAtMs = momentMs(parsed.data.expires_at);
  if (expiresAtMs !== null && expiresAtMs <= nowMs)
    return { problem: "The parameter expires_at is in the past." };
  return { url: callback.url, parameters: parsed.data, kept };
}

const refused = (context: RequestContext<unknown>, problem: string): Response =>
  pageResponse(
    context,
    messagePage({
      title: "This app sent a request that cannot be understood",
      problem,
      sentences: ["Nothing was granted. Tell the people who make the app."],
    }),
    { status: 400 },
  );

function askedFor(
  url: URL,
  { key_label: label, limit, usage_limit_type: window, expires_at: expiry }: Parameters,
): Asked {
  return {
    withBundles: false,
    terms: {
      label: label ?? url.host,
      limitNanoUsd: limit === undefined ? null : (nanoFromUsd(limit) ?? 0n),
      limitReset: window ?? null,
      expiresAtMs: momentMs(expiry),
      allowedModels: null,
      scopes: [],
    },
  };
}

const consentText = (
  url: URL,
  { kept, isNew }: { kept: Record<string, string>; isNew: boolean },
): Omit<ConsentText, "problem"> => ({
  title: `Give ${url.host} an API key`,
  lead:
    `${url.host} asks for an API key of your account. With it, the app sends requests to models and spends your ` +
    "credits, up to the cap. It can list models and look up requests by their ids. It cannot see your balance, create keys " +
    "or change your account.",
  facts: [
    ["App", url.host],
    ["Code goes to", `${url.origin}${url.pathname}`],
  ],
  warnings: [
    ...(isLoopback(url)
      ? ["This app runs on this computer. Approve only if you started it yourself, just now."]
      : []),
    ...(isNew && !isLoopback(url)
      ? [`You have not given ${url.host} a key before. Check that this is the address you expect.`]
      : []),
  ],
  action: "/auth",
  again: `/auth?${new URLSearchParams(kept).toString()}`,
  formTargets: [url.origin],
  hidden: Object.fromEntries(Object.entries(kept).map(([name, value]) => [`asked_${name}`, value])),
});

export const authPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/auth",
  summary: "Show the page that gives an app a key.",
  description:
    "The browser returns to callback_url with code, and with state if it was sent. POST /auth/keys exchanges the code.",
  query: parametersSchema.partial(),
  async handle(context, deps: Pick<Dependencies, "directory" | "people" | "consent" | "clock">) {
    const request = readRequest(context.query, deps.clock.nowMs());
    if ("problem" in request) return refused(context, request.problem);
    const person = await personOf(context, deps);
    if (person === undefined) return redirect(context, signInPath(placeOf(context)));
    const { url, parameters, kept } = request;
    const isNew = !(await deps.consent.connections.wereGivenKey(person.user.id, url.host));
    return pageResponse(
      context,
      await askConsent(deps, person, {
        asked: askedFor(url, parameters),
        text: consentText(url, { kept, isNew }),
      }),
    );
  },
});

/** Takes the decision, and redirects the browser to the app. */
export const submitAuth = defineEndpoint({
  ...pageRoute,
  method: "POST",
  path: "/auth",
  summary: "Give an app a key (form of the page).",
  rawBody: z.looseObject({ decision: z.enum(["approve", "decline"]) }),
  rawBodyType: "application/x-www-form-urlencoded",
  async handle(
    context,
    deps: Pick<Dependencies, "directory" | "people" | "consent" | "clock" | "publicUrl">,
  ) {
    const form = await readForm(context, deps);
    const request = readRequest(namedAs(form), deps.clock.nowMs());
    if ("problem" in request) return refused(context, request.problem);
    const { url, parameters, kept } = request;
    const person = await personOf(context, deps);
    if (person === undefined)
      return redirect(context, signInPath(`/auth?${new URLSearchParams(kept).toString()}`));
    const asked = askedFor(url, parameters);
    const decision = await readDecision(deps, person, { form, asked });
    const { state } = parameters;
    if (decision.kind === "again") {
      const text = { ...consentText(url, { kept, isNew: false }), problem: decision.problem };
      return pageResponse(context, await askConsent(deps, person, { asked, text }), {
        status: 400,
      });
    }
    if (decision.kind === "decline")
      return redirect(context, callbackWith(url.href, { error: "access_denied", state }));
    const issued = await deps.consent.codes.issue({
      purpose: "exchange",
      clientId: null,
      clientName: url.host,
      callbackUrl: url.href,
      challenge: parameters.code_challenge,
      method: parameters.code_challenge_method satisfies ChallengeMethod,
      userId: person.user.id,
      workspaceId: decision.workspaceId,
      parentKeyId: null,
      terms: decision.terms,
      resource: null,
    });
    if (issued === undefined)
      return refused(
        context,
        "Too many requests of apps wait for their code. Try again in ten minutes.",
      );
    return redirect(context, callbackWith(url.href, { code: issued.code, state }));
  },
});

/**
 * Returns the parameters of the original request from a form. The person's field for the cap has
 * the same name as the app's, so the app's is sent under another.
 */
function namedAs(form: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams();
  for (const name of Object.keys(parametersSchema.shape)) {
    const value = form.get(`asked_${name}`);
    if (value !== null) kept.set(name, value);
  }
  return kept;
}
