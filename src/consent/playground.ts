import type { LimitReset } from "../identity/keys/llm-key-store.ts";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import { KeyedMutex } from "../platform/kernel/keyed-mutex.ts";
import { nanoUsdPerUsd } from "../platform/kernel/money.ts";
import type { Connection, Connections } from "./connections.ts";

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
export class Playground {
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
