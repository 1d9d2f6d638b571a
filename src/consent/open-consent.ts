import { getCACertificates } from "node:tls";
import type { SecretHasher } from "../identity/keys/secret-hasher.ts";
import { parseRange } from "../platform/kernel/network/address-range.ts";
import type { AddressGuard } from "../platform/notify/public-address.ts";
import { AuthorizationCodes } from "./authorization-codes.ts";
import { ClientDocuments } from "./client-documents.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { DeviceCodes } from "./device-codes.ts";
import { OauthClients } from "./oauth-clients.ts";
import { Playground } from "./playground.ts";
import { RefreshTokens } from "./refresh-tokens.ts";

/** The parts that issue credentials for apps with the consent of a person or a key. */
export interface Consent {
  codes: AuthorizationCodes;
  devices: DeviceCodes;
  clients: OauthClients;
  /** Clients whose id is the address of their description. */
  documents: ClientDocuments;
  connections: Connections;
  playground: Playground;
  refreshTokens: RefreshTokens;
  /** Deletes codes, tokens and clients that have ended. */
  removeEnded(): Promise<void>;
}

/** Dependencies of the consent flows. */
export type ConsentParts = ConnectionsOptions & { hasher: SecretHasher };

/** The addresses from which descriptions of clients may be read, beside the public internet. */
interface DocumentSettings {
  /** Ranges of the operator's own networks. */
  networks?: readonly string[] | undefined;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  certificates?: readonly string[] | undefined;
}

/** Builds the consent flows. */
export function openConsent({
  documents: settings,
  ...options
}: ConsentParts & { documents: DocumentSettings }): Consent {
  const codes = new AuthorizationCodes(options);
  const devices = new DeviceCodes(options);
  const clients = new OauthClients(options);
  const documents = new ClientDocuments({ guard: guardOf(settings), clock: options.clock });
  const connections = new Connections(options);
  const refreshTokens = new RefreshTokens(options);
  return {
    codes,
    devices,
    clients,
    documents,
    refreshTokens,
    connections,
    playground: new Playground({ ...options, connections }),
    async removeEnded() {
      for (const part of [codes, devices, refreshTokens, connections]) await part.removeEnded();
      await clients.removeUnused();
    },
  };
}

const guardOf = ({ networks = [], certificates = [] }: DocumentSettings): AddressGuard => ({
  allowed: networks.flatMap((range) => parseRange(range) ?? []),
  // The platform's own list, with those of `NODE_EXTRA_CA_CERTS`, is copied only where more are
  // trusted.
  ...(certificates.length === 0
    ? {}
    : { trusted: [...getCACertificates("default"), ...certificates] }),
});
