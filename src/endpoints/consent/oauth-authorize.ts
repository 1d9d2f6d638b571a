import { z } from "zod";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import { pkcePattern } from "../../consent/authorization-codes.ts";
import {
  allowsRedirect,
  callbackWith,
  isNativeRedirect,
  type OauthClient,
} from "../../consent/oauth-clients.ts";
import { ClientDocumentError } from "../../consent/client-documents.ts";
import { readScopes } from "../../consent/granted-scopes.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { messagePage } from "../../pages/message-page.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  pageResponse,
  pageRoute,
  personOf,
  placeOf,
  readForm,
  redirect,
  signInPath,
} from "../pages/page-response.ts";
import { askConsent, readDecision, type Asked, type ConsentText } from "./consent-form.ts";

const shared = { ...pageRoute, base: "api", anyOrigin: false } as const;

const pagePath = "/api/v1/mcp/oauth/authorize";

const names = [
  "client_id",
  "redirect_uri",
  "response_type",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
  "response_mode",
] as const;
type Name = (typeof names)[number];
type Kept = Partial<Record<Name, string>>;

const parametersSchema = z.looseObject(
  Object.fromEntries(names.map((name) => [name, z.string().optional()])),
);

/** A request that may be answered at its redirect URI. */
interface Trusted {
  client: OauthClient;
  redirectUri: string;
  kept: Kept;
}

/** A request that can be consented to. */
interface Authorization extends Trusted {
  challenge: string;
  asked: Asked;
}

/** The paths of this service that tokens can be for. */
const resourcePaths: ReadonlySet<string> = new Set([
  "",
  "/",
  "/mcp",
  "/v1/mcp",
  "/api/v1/mcp",
  "/api/v1",
  "/api",
  "/v1",
]);

/** Matches the path of an upstream MCP server. */
const serverPath = /^(?:\/api)?(?:\/v1)?\/mcp\/[a-z0-9][a-z0-9-]{0,22}\/?$/;

/** Returns whether a resource is this service (RFC 8707, section 2). */
function isOwnResource(resource: string, publicUrl: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname, search, hash } = new URL(resource);
  return (
    origin === new URL(publicUrl).origin &&
    search === "" &&
    hash === "" &&
    (resourcePaths.has(pathname.replace(/\/$/, "")) || serverPath.test(pathname))
  );
}

type Found = OauthClient | { problem: string } | "signed out";

/**
 * Returns a client by its id, or by its description where the id is an address. Descriptions are
 * fetched for signed-in people only.
 */
async function findClient(
  id: string,
  { consent }: Pick<Dependencies, "consent">,
  person: SessionCaller | undefined,
): Promise<Found> {
  if (!consent.documents.isDocumentId(id)) {
    return (
      (await consent.clients.find(id)) ?? { problem: "The app is not registered here (client_id)." }
    );
  }
  if (person === undefined) return "signed out";
  try {
    const client = await consent.documents.find(id, person.user.id);
    return { ...client, wasUsed: await consent.connections.wereMade(id) };
  } catch (error) {
    if (!(error instanceof ClientDocumentError)) throw error;
    return {
      problem: `The description of the app at ${id.slice(0, 300)} cannot be used (client_id): it ${error.message}.`,
    };
  }
}

/**
 * Reads client and redirect URI. A problem is shown to the person without a redirect, since the URI
 * is not known to be the client's.
 */
async function readTrusted(
  query: URLSearchParams,
  deps: Pick<Dependencies, "consent">,
  person: SessionCaller | undefined,
): Promise<Trusted | { problem: string } | "signed out"> {
  for (const name of names)
    if (query.getAll(name).length > 1) return { problem: `The parameter ${name} is sent twice.` };
  const kept: Kept = Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name);
      return value === null || value.length > 4_000 ? [] : [[name, value]];
    }),
  );
  const client = await findClient(kept.client_id ?? "", deps, person);
  if (client === "signed out" || "problem" in client) return client;
  const redirectUri =
    kept.redirect_uri ?? (client.redirectUris.length === 1 ? client.redirectUris[0] : undefined);
  if (redirectUri === undefined || !allowsRedirect(client, redirectUri)) {
    return {
      problem:
        "The address that the app wants to go back to is not one that it registered (redirect_uri).",
    };
  }
  return { client, redirectUri, kept };
}

/** Returns the problem of a trusted request, in OAuth's terms (RFC 6749, section 4.1.2.1). */
function readAuthorization(
  trusted: Trusted,
  { publicUrl }: Pick<Dependencies, "publicUrl">,
): Authorization | { error: string; description: string } {
  const { kept, client } = trusted;
  if (kept.response_type !== "code")
    return { error: "unsupported_response_type", description: "response_type must be code." };
  if (kept.response_mode !== undefined && kept.response_mode !== "query")
    return { error: "invalid_request", description: "response_mode must be query." };
  if (kept.code_challenge === undefined || !pkcePattern.test(kept.code_challenge)) {
    return { error: "invalid_request", description: "code_challenge is required (PKCE, S256)." };
  }
  if (kept.code_challenge_method !== "S256")
    return { error: "invalid_request", description: "code_challenge_method must be S256." };
  if (kept.resource !== undefined && !isOwnResource(kept.resource, publicUrl())) {
    return { error: "invalid_target", description: "resource is not one of this service." };
  }
  const wanted = readScopes(kept.scope);
  if (wanted === undefined)
    return { error: "invalid_scope", description: "scope holds nothing that apps can be granted." };
  const terms = {
    label: client.name,
    limitNanoUsd: null,
    limitReset: null,
    expiresAtMs: null,
    allowedModels: null,
    scopes: wanted.scopes,
  };
  return { ...trusted, challenge: kept.code_challenge, asked: { terms, withBundles: true } };
}

/** Redirects the browser to the app. `iss` says who answers, against mix-up attacks (RFC 9207). */
const backTo = (
  context: RequestContext<unknown>,
  { redirectUri, kept }: Trusted,
  { publicUrl, ...answer }: { publicUrl: string } & Record<string, string>,
): Response =>
  redirect(context, callbackWith(redirectUri, { ...answer, state: kept.state, iss: publicUrl }));

const refused = (context: RequestContext<unknown>, problem: string): Response =>
  pageResponse(
    context,
    messagePage({
      title: "This app sent a request that cannot be trusted",
      problem,
      sentences: [
        "Nothing was granted, and the app was not told. If you did not start this, close the page.",
      ],
    }),
    { status: 400 },
  );

/**
 * Shows the problem of a request to a person who has not signed in. Clients register themselves, so a
 * link to this service could otherwise lead people to a site of its author's choice (RFC 9700, section
 * 4.11.2). Programs on the person's machine receive the error at once.
 */
const shownHere = (context: RequestContext<unknown>, description: string): Response =>
  pageResponse(
    context,
    messagePage({
      title: "This app sent a request that cannot be answered",
      problem: description,
      sentences: ["Nothing was granted. Sign in to go back to the app with this message."],
      links: [{ href: signInPath(placeOf(context)), label: "Sign in" }],
    }),
    { status: 400 },
  );

/**
 * Returns where forms of the page may lead: the app's origin, or its scheme (CSP `form-action`).
 */
function formTarget(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri);
  return protocol === "https:" || protocol === "http:" ? origin : protocol;
}

/** Returns the path that opens the page with the same request again. */
const pageAgain = (query: URLSearchParams | Kept): string =>
  `${pagePath}?${new URLSearchParams(query instanceof URLSearchParams ? query : Object.entries(query)).toString()}`;

const consentText = (
  { client, redirectUri, kept }: Authorization,
  isNew: boolean,
): Omit<ConsentText, "problem"> => {
  const target = new URL(redirectUri);
  const isLocal = client.applicationType === "native";
  const { publishedBy } = client;
  return {
    title: `Connect ${client.name}`,
    lead: `${client.name} asks to use your account. The name is the app's own word: what counts is where you go back to.`,
    facts: [
      ["App", client.name],
      ...(publishedBy === null ? [] : [["Published by", publishedBy] as const]),
      ["Goes back to", target.host === "" ? target.protocol : `${target.protocol}//${target.host}`],
      ...(client.clientUri === null ? [] : [["Says it is from", client.clientUri] as const]),
    ],
    warnings: [
      ...(publishedBy !== null && !isNativeRedirect(redirectUri) && target.host !== publishedBy
        ? [`It goes back to ${target.host}, which is not where it is published.`]
        : []),
      ...(isLocal
        ? ["This app runs on this computer. Approve only if you started it yourself, just now."]
        : []),
      ...(isNew ? ["No member of this workspace has connected this app yet."] : []),
    ],
    action: pagePath,
    again: pageAgain(kept),
    formTargets: [formTarget(redirectUri)],
    hidden: Object.fromEntries(
      Object.entries(kept).map(([name, value]) => [`asked_${name}`, value]),
    ),
  };
};

/** Shows the page on which a person connects an app (OAuth 2.1, section 4.1.1). */
export const authorizePage = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/mcp/oauth/authorize",
  summary: "Show the page that connects an app.",
  query: parametersSchema,
  async handle(
    context,
    deps: Pick<Dependencies, "directory" | "people" | "consent" | "clock" | "publicUrl">,
  ) {
    const person = await personOf(context, deps);
    const trusted = await readTrusted(context.query, deps, person);
    if (trusted === "signed out") return redirect(context, signInPath(pageAgain(context.query)));
    if ("problem" in trusted) return refused(context, trusted.problem);
    const authorization = readAuthorization(trusted, deps);
    if ("error" in authorization) {
      const { error, description } = authorization;
      if (person === undefined && !isNativeRedirect(trusted.redirectUri))
        return shownHere(context, description);
      return backTo(context, trusted, {
        publicUrl: deps.publicUrl(),
        error,
        error_description: description,
      });
    }
    if (person === undefined) return redirect(context, signInPath(pageAgain(context.query)));
    const text = consentText(authorization, !trusted.client.wasUsed);
    return pageResponse(
      context,
      await askConsent(deps, person, { asked: authorization.asked, text }),
    );
  },
});

function keptOf(form: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams();
  for (const name of names)
    for (const value of form.getAll(`asked_${name}`)) kept.append(name, value);
  return kept;
}

/** Takes the decision, and redirects the browser to the app. */
export const submitAuthorize = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/mcp/oauth/authorize",
  summary: "Connect an app (form of the page).",
  rawBody: z.looseObject({ decision: z.enum(["approve", "decline"]) }),
  rawBodyType: "application/x-www-form-urlencoded",
  async handle(
    context,
    deps: Pick<Dependencies, "directory" | "people" | "consent" | "clock" | "publicUrl">,
  ) {
    const form = await readForm(context, deps);
    const query = keptOf(form);
    const person = await personOf(context, deps);
    const trusted = await readTrusted(query, deps, person);
    if (trusted === "signed out") return redirect(context, signInPath(pageAgain(query)));
    if ("problem" in trusted) return refused(context, trusted.problem);
    const authorization = readAuthorization(trusted, deps);
    if ("error" in authorization) return refused(context, authorization.description);
    if (person === undefined) return redirect(context, signInPath(pageAgain(query)));
    const { asked, client, redirectUri, challenge, kept } = authorization;
    const decision = await readDecision(deps, person, { form, asked });
    if (decision.kind === "again") {
      const text = { ...consentText(authorization, false), problem: decision.problem };
      return pageResponse(context, await askConsent(deps, person, { asked, text }), {
        status: 400,
      });
    }
    const publicUrl = deps.publicUrl();
    if (decision.kind === "decline")
      return backTo(context, trusted, { publicUrl, error: "access_denied" });
    const issued = await deps.consent.codes.issue({
      purpose: "oauth",
      clientId: client.id,
      clientName: client.name,
      callbackUrl: redirectUri,
      challenge,
      method: "S256",
      userId: person.user.id,
      workspaceId: decision.workspaceId,
      parentKeyId: null,
      terms: decision.terms,
      resource: kept.resource ?? null,
    });
    if (issued === undefined)
      return backTo(context, trusted, { publicUrl, error: "temporarily_unavailable" });
    return backTo(context, trusted, { publicUrl, code: issued.code });
  },
});
