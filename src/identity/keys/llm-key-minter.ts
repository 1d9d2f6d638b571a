import { brand } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { unlimitedKey } from "./caller.ts";
import type { CredentialDirectory } from "./credential-directory.ts";
import { maskSecret, newSecret, type SecretHasher } from "./secret-hasher.ts";
import type { LlmKeyStore, LlmKey } from "./llm-key-store.ts";
import type { NewLlmKey } from "./llm-key-editor.ts";

/** The parts that keys are created with. */
interface MinterOptions {
  store: LlmKeyStore;
  directory: CredentialDirectory;
  hasher: SecretHasher;
  clock: Clock;
  /** Returns the teams that a person's new keys have to belong to; absent where there are none. */
  teamsOf?: (person: { workspaceId: string; userId: string }) => Promise<readonly string[]>;
}

/** Creates LLM keys. The secret is returned by `mint` and kept nowhere else. */
export class LlmKeyMinter {
  private readonly store: LlmKeyStore;
  private readonly directory: CredentialDirectory;
  private readonly hasher: SecretHasher;
  private readonly time: DistinctTime;
  private readonly teamsOf: MinterOptions["teamsOf"];

  constructor(options: MinterOptions) {
    this.store = options.store;
    this.directory = options.directory;
    this.hasher = options.hasher;
    this.time = new DistinctTime(options.clock);
    this.teamsOf = options.teamsOf;
  }

  /**
   * Stores a new key and puts it in force. `secret` is given only where automation brings its own.
   * Throws `forbidden` where its creator is bound to other teams.
   */
  async mint(
    wanted: NewLlmKey,
    secret = newSecret(
      wanted.connection === undefined ? brand.llmKeyPrefix : brand.accessTokenPrefix,
    ),
  ): Promise<{ secret: string; key: LlmKey }> {
    const teamId = await this.teamOf(wanted);
    const nowMs = this.time.nextMs();
    const key: LlmKey = {
      ...unlimitedKey({
        id: newId("key", nowMs),
        workspaceId: wanted.workspaceId,
        creatorUserId: wanted.creatorUserId,
      }),
      createdAtMs: nowMs,
      ...wanted,
      ...(typeof teamId === "string" && { teamId }),
      hash: this.hasher.hash(secret),
      label: maskSecret(
        secret,
        wanted.connection === undefined ? brand.llmKeyPrefix : brand.accessTokenPrefix,
      ),
    };
    await this.store.insert(key);
    this.directory.putLlmKey(key);
    return { secret, key };
  }

  /** Returns the team of a new key: the one that is wanted, or the first that its creator is bound to. */
  private async teamOf(wanted: NewLlmKey): Promise<string | null | undefined> {
    const { workspaceId, creatorUserId, parentKeyId, teamId } = wanted;
    // A child belongs to the team of its parent, in which its creator need not be.
    if (this.teamsOf === undefined || parentKeyId !== undefined) return teamId;
    const bound = await this.teamsOf({ workspaceId, userId: creatorUserId });
    if (bound.length === 0) return teamId;
    if (teamId === undefined) return bound[0];
    if (teamId !== null && bound.includes(teamId)) return teamId;
    throw new GatewayError(
      "forbidden",
      `team_id: keys that you create belong to a team of yours: ${bound.join(" or ")}.`,
      { param: "team_id", metadata: { team_ids: [...bound] } },
    );
  }
}
