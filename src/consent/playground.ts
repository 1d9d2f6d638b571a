import type { LimitReset } from "../account/keys/llm-key.ts";
import { Turns } from "../account/turns.ts";
import { hourMs, type Clock } from "../platform/lib/clock.ts";
import { nanoUsdPerUsd } from "../platform/lib/money.ts";
import type { Connection, Connections } from "./connections.ts";

/** What tells the connection of the playground from those of apps; ids of registered clients begin otherwise. */
export const playgroundClientId = "playground";

const tokenMs = 12 * hourMs;
/** What the playground of one person may cost a day, in nano-USD. */
const limitNanoUsd = 5n * nanoUsdPerUsd;
const limitReset: LimitReset = "daily";

/** Who uses the playground, and from where. */
export interface PlaygroundUser {
  workspaceId: string;
  userId: string;
  address: string;
  userAgent: string;
}

/** A token for the playground of one person; the secret exists in this answer alone. */
export interface PlaygroundToken {
  secret: string;
  keyId: string;
  connectionId: string;
  expiresAtMs: number;
}

/**
 * Gives pages a token with which they send inference requests in a person's own name. It is an access token of a connection: one
 * for each person and workspace, whose key meters and limits what the playground costs, and that ends with the membership.
 */
export class Playground {
  private readonly connections: Connections;
  private readonly clock: Clock;
  private readonly turns = new Turns();

  constructor({ connections, clock }: { connections: Connections; clock: Clock }) {
    this.connections = connections;
    this.clock = clock;
  }

  /** A new token; the one before it is dead when this resolves. */
  issue(user: PlaygroundUser): Promise<PlaygroundToken> {
    return this.turns.run(`${user.workspaceId} ${user.userId}`, async () => {
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
