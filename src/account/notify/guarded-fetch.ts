import { isIPv6 } from "node:net";
import { resolveTarget, type AddressGuard } from "./public-address.ts";

/** What a guarded request is made of; redirects are the caller's to judge, and cookies are never kept. */
export type GuardedRequest = Omit<RequestInit, "redirect" | "headers" | "signal"> & {
  headers?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** False leaves a compressed body as it came, so that a small answer cannot become a large one. */
  decompress?: false;
};

/**
 * Sends a request to a URL that somebody else wrote. Connects to the address that was judged, whatever the name means a moment later.
 * Throws `UnsafeTargetError` for what leads into a private network.
 */
export async function guardedFetch(
  text: string,
  { headers = {}, ...request }: GuardedRequest,
  guard: AddressGuard,
): Promise<Response> {
  const { url, address } = await resolveTarget(text, guard);
  const pinned = new URL(url);
  pinned.hostname = isIPv6(address) ? `[${address}]` : address;
  return fetch(pinned, {
    ...request,
    redirect: "manual",
    headers: { ...headers, host: url.host },
    tls: {
      serverName: url.hostname.replace(/^\[|\]$/g, ""),
      ...(guard.trusted === undefined ? {} : { ca: [...guard.trusted] }),
    },
  });
}
