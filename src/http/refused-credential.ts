import { countedAddress } from "../account/limits/counted-address.ts";
import { anonymousTier } from "../account/limits/rate-tier.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { RateCounters } from "./count-request.ts";
import { rateHeaders } from "./rate-headers.ts";

/** A credential that was sent and opens nothing: unknown, forged, revoked, disabled or expired. Every guess fails so. */
export class RefusedCredentialError extends GatewayError {}

/**
 * Counts a request whose credential was refused, by its address and apart from anonymous requests. Callers with good
 * credentials are never counted here, so a neighbour behind the same address cannot shut them out.
 * Throws `ip_rate_limit_exceeded` beyond the window, else what refused the credential.
 */
export async function countRefusedCredential(
  { limiter }: RateCounters,
  {
    refusal,
    address,
    headers,
  }: { refusal: RefusedCredentialError; address: string; headers: Record<string, string> },
): Promise<never> {
  const counter = `refused ${countedAddress(address)}`;
  const { admitted, tier } = await limiter.count({
    minutes: [{ counter, tier: anonymousTier }],
    hours: undefined,
  });
  Object.assign(headers, rateHeaders(tier));
  if (admitted) throw refusal;
  throw new GatewayError(
    "ip_rate_limit_exceeded",
    `More than ${tier.perMinute} requests whose credentials are not valid came from your address within 60 seconds. ` +
      "Check the key that is sent, and wait; requests with a valid one are served meanwhile.",
    {
      retryAfterSeconds: 60,
      metadata: {
        tier: tier.id,
        limit: tier.perMinute,
        window_seconds: 60,
        reason: "invalid_credentials",
      },
    },
  );
}
