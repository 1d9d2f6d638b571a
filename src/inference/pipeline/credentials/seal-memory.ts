import type { Clock } from "../../../platform/kernel/clock.ts";
import type { Candidate } from "../../routing/candidate.ts";

/** The most seals that are remembered, and for how long. */
const sealsMax = 8_192;
const lifetimeMs = 3_600_000;

/** Matches the seals of a request in any dialect; a quote stands within a text only escaped. */
const sealPattern =
  /"(?:encrypted_content|signature|data|thoughtSignature|redactedContent)"\s*:\s*"([^"\\]+)"/g;

/**
 * The seals that accounts at providers have lately refused, so that the next turn of a conversation
 * is sent without them at once. They are in memory and bounded. What is forgotten costs one more
 * refused attempt.
 */
export class SealMemory {
  /** Whether any was refused at all, which nearly no request has to look up. */
  isUsed = false;
  /** When the latest refusal of an account is forgotten, the oldest first. */
  private readonly accounts = new Map<string, number>();
  /** When each refused seal is forgotten, the oldest first. */
  private readonly seals = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Notes seals that a candidate's account has refused. */
  note(candidate: Candidate, seals: readonly string[]): void {
    const account = accountOf(candidate);
    const nowMs = this.clock.monotonicMs();
    const untilMs = nowMs + lifetimeMs;
    for (const [name, endMs] of this.accounts) {
      if (endMs > nowMs) break;
      this.accounts.delete(name);
    }
    this.accounts.delete(account);
    this.accounts.set(account, untilMs);
    this.isUsed = true;
    for (const seal of seals) {
      const key = keyOf(account, seal);
      this.seals.delete(key);
      this.seals.set(key, untilMs);
    }
    for (const key of this.seals.keys()) {
      if (this.seals.size <= sealsMax) break;
      this.seals.delete(key);
    }
  }

  /**
   * Returns whether a candidate's account has refused a seal; undefined where it has refused none of
   * those of a request.
   */
  refusedOf(candidate: Candidate, textOf: () => string): ((seal: string) => boolean) | undefined {
    const account = accountOf(candidate);
    const nowMs = this.clock.monotonicMs();
    const lastMs = this.accounts.get(account);
    if (lastMs === undefined) return undefined;
    if (lastMs <= nowMs) {
      this.accounts.delete(account);
      return undefined;
    }
    const isRefused = (seal: string): boolean =>
      (this.seals.get(keyOf(account, seal)) ?? 0) > nowMs;
    return textOf()
      .matchAll(sealPattern)
      .some(([, seal = ""]) => isRefused(seal))
      ? isRefused
      : undefined;
  }
}

/** Returns the account that a candidate's requests are sent with. */
function accountOf({ route: { provider }, credential }: Candidate): string {
  const key = credential?.key.id ?? `platform ${provider.apiKey ?? ""}`;
  return `${provider.id} ${Bun.hash.wyhash(key)}`;
}

const keyOf = (account: string, seal: string): string => `${account} ${Bun.hash.wyhash(seal)}`;
