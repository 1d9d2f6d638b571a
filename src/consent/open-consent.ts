import type { SecretHasher } from "../account/keys/secret-hasher.ts";
import { AuthorizationCodes } from "./authorization-codes.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";

/** Everything that mints credentials for apps by the consent of a person or a key. */
export interface Consent {
  codes: AuthorizationCodes;
  connections: Connections;
}

/** What the consent flows are built from. */
export type ConsentOptions = ConnectionsOptions & { hasher: SecretHasher };

/** Builds the consent flows. */
export function openConsent(options: ConsentOptions): Consent {
  return { codes: new AuthorizationCodes(options), connections: new Connections(options) };
}
