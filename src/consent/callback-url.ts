const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Whether a URL leads to a program on the person's own machine (RFC 8252, section 7.3). */
export const isLoopback = ({ hostname }: URL): boolean => loopbackHosts.has(hostname);

const refusals: readonly (readonly [string, (url: URL) => boolean])[] = [
  [
    "must be an https URL, or http on localhost, 127.0.0.1 or [::1]",
    (url) => url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url)),
  ],
  [
    "must not hold a user name or password",
    ({ username, password }) => username !== "" || password !== "",
  ],
  ["must not have a fragment", ({ href }) => href.includes("#")],
];

/**
 * Reads a callback URL of an app (contract: https, or http on localhost, 127.0.0.1 or [::1], any port). Gives the URL, or what is
 * wrong with it. The text has to be what the parser reads, so that no other reader sees another host in it.
 */
export function readCallbackUrl(text: string): { url: URL } | { problem: string } {
  if (!URL.canParse(text) || /[\s\\\p{Cc}]/u.test(text))
    return { problem: "must be an absolute URL" };
  const url = new URL(text);
  const refused = refusals.find(([, isRefused]) => isRefused(url));
  return refused === undefined ? { url } : { problem: refused[0] };
}

/** The callback with parameters added to its query. */
export function callbackWith(
  callbackUrl: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const url = new URL(callbackUrl);
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}
