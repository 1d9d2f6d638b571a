import { getCACertificates } from "node:tls";
import type { SecretHasher } from "../identity/keys/secret-hasher.ts";
import type { LimitReset } from "../identity/keys/llm-key-store.ts";
import { parseRange } from "../platform/kernel/network/address-range.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import { KeyedMutex } from "../platform/kernel/keyed-mutex.ts";
import { nanoUsdPerUsd } from "../platform/kernel/money.ts";
import type { AddressGuard } from "../platform/notify/public-address.ts";
import { AuthorizationCodes, RefreshTokens } from "./authorization-codes.ts";
import { ClientDocuments } from "./client-documents.ts";
import { Connections, type Connection, type ConnectionsOptions } from "./connections.ts";
import { DeviceCodes } from "./device-codes.ts";
import { OauthClients } from "./oauth-clients.ts";

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

/** The client id of the playground's connection. Ids of registered clients have another prefix. */
const playgroundClientId = "playground";

const tokenMs = 12 * hourMs;
/** The most that one person's playground may cost in a day, in nano-USD. */
const limitNanoUsd = 5n * nanoUsdPerUsd;
const limitReset: LimitReset = "daily";

/** The person who uses the playground, and their address. */
interface PlaygroundUser {
  workspaceId: string;
  userId: string;
  address: string;
  userAgent: string;
}

/** A token for one person's playground. The secret is returned only here. */
interface PlaygroundToken {
  secret: string;
  keyId: string;
  connectionId: string;
  expiresAtMs: number;
}

/**
 * Issues tokens with which dashboard pages send inference requests as their person. Each is the
 * access token of a connection, one for each person and workspace, whose key meters and limits the
 * playground's cost and ends with the membership.
 */
class Playground {
  private readonly connections: Connections;
  private readonly clock: Clock;
  private readonly mutex = new KeyedMutex();

  constructor({ connections, clock }: { connections: Connections; clock: Clock }) {
    this.connections = connections;
    this.clock = clock;
  }

  /** Issues a new token. The previous one is revoked when this resolves. */
  issue(user: PlaygroundUser): Promise<PlaygroundToken> {
    return this.mutex.run(`${user.workspaceId} ${user.userId}`, async () => {
      const expiresAtMs = this.clock.nowMs() + tokenMs;
      const open = await this.connections.list({
        workspaceId: user.workspaceId,
        userId: user.userId,
      });
      const known = open.find(({ clientId }) => clientId === playgroundClientId);
      const renewed =
        known &&
        (await this.connections.renew(known, {
          tokenExpiresAtMs: expiresAtMs,
          address: user.address,
        }));
      if (known !== undefined && renewed !== undefined)
        return tokenOf(known, { secret: renewed, expiresAtMs });
      const { accessToken, connection } = await this.connect(user, expiresAtMs);
      return tokenOf(connection, { secret: accessToken, expiresAtMs });
    });
  }

  private connect(
    user: PlaygroundUser,
    tokenExpiresAtMs: number,
  ): ReturnType<Connections["create"]> {
    return this.connections.create({
      ...user,
      clientId: playgroundClientId,
      clientName: "Playground",
      origin: "playground",
      bundle: null,
      resource: null,
      offline: false,
      tokenExpiresAtMs,
      terms: {
        label: null,
        limitNanoUsd,
        limitReset,
        expiresAtMs: null,
        allowedModels: null,
        scopes: ["inference", "read:analytics"],
      },
    });
  }
}

const tokenOf = (
  { keyId, id }: Connection,
  { secret, expiresAtMs }: { secret: string; expiresAtMs: number },
): PlaygroundToken => ({ secret, keyId, connectionId: id, expiresAtMs });
