import type { RequestContext } from "../../../access/define-endpoint.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";

/**
 * Refuses sockets that pages of other origins open with a cookie of this service: browsers send
 * cookies with every handshake, whichever page asks for it (RFC 6455, section 10.2).
 */
export function refuseForeignPages(
  { request: { headers } }: Pick<RequestContext, "request">,
  publicUrl: string,
): void {
  const origin = headers.get("origin");
  if (origin === null || headers.get("cookie") === null) return;
  if (URL.canParse(publicUrl) && new URL(publicUrl).origin === origin) return;
  throw new GatewayError(
    "forbidden",
    "A page of another origin may not open a socket with a cookie of this service. Open it without cookies.",
  );
}
