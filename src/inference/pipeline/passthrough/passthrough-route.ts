import { brand } from "../../../platform/kernel/brand.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { PassthroughRoute, Provider } from "../../catalog/model.ts";

/** A request to a route of a provider's own API. */
interface PassedRequest {
  method: string;
  /** The path behind the provider's name, as it was sent. */
  path: string;
  query: string;
}

/** What a request may be sent to, and what it costs. */
export interface PassedTarget {
  route: PassthroughRoute;
  url: string;
}

/**
 * Matches paths that every parser reads alike: segments without encoded slashes, dots or
 * backslashes, once or twice, and none that is empty or means another folder. Java's servers leave
 * out what follows a semicolon, so that `..;a` is another folder too.
 */
const plainPath =
  /^(?:\/(?!\.{1,2}(?:[/;]|$))(?:[\w.~!$&'()*+,;=:@-]|%(?!(?:25)*(?:2[ef]|5c|00))[\da-f]{2})+)+\/?$/i;

/** Returns whether a path is plain, also for servers that decode it twice. */
function isPlain(path: string): boolean {
  if (!plainPath.test(path)) return false;
  const once = path.replace(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return !once.includes("%") || plainPath.test(once);
}

/** Returns whether a route covers a path, exactly or all below it. */
const covers = ({ path, methods }: PassthroughRoute, sent: PassedRequest): boolean => {
  if (methods !== undefined && !methods.includes(sent.method)) return false;
  return path.endsWith("/*")
    ? sent.path.startsWith(path.slice(0, -1))
    : path.replace(/\/$/, "") === sent.path.replace(/\/$/, "");
};

/**
 * Returns the address that a request is sent to: the provider's host with the path as it came, so
 * that no path reaches another host. Throws `forbidden` for a route without a price.
 */
export function passedTarget(provider: Provider, sent: PassedRequest): PassedTarget {
  const { baseUrl, passthrough = [] } = provider;
  const route = isPlain(sent.path) ? passthrough.find((one) => covers(one, sent)) : undefined;
  if (route === undefined || baseUrl === undefined) {
    const message =
      `${provider.id} has no priced route ${sent.method} ${sent.path}. ` +
      "The operator names routes under passthrough: of the provider.";
    throw new GatewayError("forbidden", message, { metadata: { provider: provider.id } });
  }
  const { origin } = new URL(baseUrl);
  const url = new URL(sent.path + sent.query, origin);
  if (url.origin !== origin || url.pathname !== sent.path)
    throw new GatewayError("bad_request", "The path is not one that can be passed on as it is.");
  return { route, url: url.href };
}

/** Headers of a connection, a credential, or of the gateway itself, which are never passed on. */
const heldBack: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  "content-length",
  "content-encoding",
  "accept-encoding",
  "authorization",
  "cookie",
  "origin",
  "referer",
  "forwarded",
  "via",
  "traceparent",
  "tracestate",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "x-portkey-api-key",
  "x-goog-user-project",
  // Names of another project, or of another workspace, that the operator's credential may reach.
  "openai-organization",
  "openai-project",
  "anthropic-workspace-id",
  // Another method, or another path, than the one that was priced.
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-original-url",
  "x-rewrite-url",
  "http-referer",
  "x-title",
  "x-session-id",
  "x-real-ip",
]);
const heldBackFamilies = /^(?:x-service|x-forwarded|x-amz|proxy|sec|cf)-/;

const isHeldBack = (name: string): boolean => heldBack.has(name) || heldBackFamilies.test(name);

/** Returns whether a text contains a key of the gateway, in whichever header or parameter it stands. */
export const bearsOwnKey = (text: string): boolean =>
  text.includes(brand.llmKeyFamilyPrefix) || text.includes(brand.managementKeyPrefix);

/** Returns the headers of a request that its provider is sent. */
export const passedHeaders = (
  sent: readonly (readonly [name: string, value: string])[],
): Record<string, string> =>
  Object.fromEntries(
    sent.filter(([name, value]) => !isHeldBack(name.toLowerCase()) && !bearsOwnKey(value)),
  );

/** Headers of answers that are passed on: what they are, and how often more may be asked. */
const shown: ReadonlySet<string> = new Set([
  "content-type",
  "content-disposition",
  "content-language",
  "etag",
  "last-modified",
  "expires",
  "retry-after",
]);
const shownFamilies = /^(?:x-ratelimit|anthropic|openai|x-goog)-/;

/** Headers of those families that name the operator's account. */
const ofAccount = /-(?:organization(?:-id)?|project|workspace-id|user-project)$/;

const isShown = (name: string): boolean =>
  shown.has(name) || (shownFamilies.test(name) && !ofAccount.test(name));

/** Returns the headers of an answer that the client is shown: none with the provider's credential. */
export const shownHeaders = (
  headers: Iterable<readonly [name: string, value: string]>,
  credential: string | undefined,
): Record<string, string> =>
  Object.fromEntries(
    [...headers].filter(
      ([name, value]) =>
        isShown(name.toLowerCase()) && (!credential || !value.includes(credential)),
    ),
  );
