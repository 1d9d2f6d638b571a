import type { SecretHasher } from "../account/keys/secret-hasher.ts";
import { AuthorizationCodes } from "./authorization-codes.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { DeviceCodes } from "./device-codes.ts";
import { OauthClients } from "./oauth-clients.ts";
import { Playground } from "./playground.ts";
import { RefreshTokens } from "./refresh-tokens.ts";

/** Everything that mints credentials for apps by the consent of a person or a key. */
export interface Consent {
  codes: AuthorizationCodes;
  devices: DeviceCodes;
  clients: OauthClients;
  connections: Connections;
  playground: Playground;
  refreshTokens: RefreshTokens;
  /** Deletes codes, tokens and clients that have ended. */
  removeEnded(): Promise<void>;
}

/** What the consent flows are built from. */
export type ConsentOptions = ConnectionsOptions & { hasher: SecretHasher };

/** Builds the consent flows. */
export function openConsent(options: ConsentOptions): Consent {
  const codes = new AuthorizationCodes(options);
  const devices = new DeviceCodes(options);
  const clients = new OauthClients(options);
  const connections = new Connections(options);
  const refreshTokens = new RefreshTokens(options);
  return {
    codes,
    devices,
    clients,
    refreshTokens,
    connections,
    playground: new Playground({ ...options, connections }),
    async removeEnded() {
      for (const part of [codes, devices, refreshTokens, connections]) await part.removeEnded();
      await clients.removeUnused();
    },
  };
}
