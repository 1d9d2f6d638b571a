import type { IpAllowlist } from "../account/security/ip-allowlist.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { RequestContext } from "./request-context.ts";

/** Refuses callers whose workspace has an allowlist without their address. Throws `ip_not_allowed`. */
export function checkAddress(allowlist: IpAllowlist, context: RequestContext): void {
  const { caller } = context;
  if (
    caller.kind === "anonymous" ||
    allowlist.allows(caller.workspace.id, () => context.clientAddress())
  )
    return;
  const address = context.clientAddress();
  throw new GatewayError(
    "ip_not_allowed",
    `The address ${address} is not on the IP allowlist of this workspace.`,
    {
      metadata: { client_address: address },
    },
  );
}
