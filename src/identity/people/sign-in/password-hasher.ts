import { GatewayError } from "../../../platform/kernel/errors.ts";

/**
 * The most hashes that are computed concurrently. Each takes a thread and 19 MiB for some 20 ms,
 * and requests need the machine too.
 */
const parallelMax = 2;
/** The most hashes that may wait. Further requests are asked to try again later. */
const waitingMax = 64;

/** What one hash of a password costs. */
export interface HashCost {
  memoryKib: number;
  passes: number;
}

/**
 * The parameters of OWASP's password storage cheat sheet (2026): argon2id with at least 19 MiB and
 * two passes.
 */
const recommendedCost: HashCost = { memoryKib: 19_456, passes: 2 };

/** Computes and checks hashes of passwords, few at a time. */
export class PasswordHasher {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly cost: HashCost = recommendedCost) {}

  /**
   * Throws `service_unavailable` where too many hashes wait. Called before work that cannot be
   * refused halfway.
   */
  assertRoom(): void {
    if (this.waiting.length < waitingMax) return;
    throw new GatewayError(
      "service_unavailable",
      "Too many people sign in at this moment. Try again in a few seconds.",
      {
        retryAfterSeconds: 5,
      },
    );
  }

  /** Returns a hash with its salt and parameters, as PHC text. */
  hash(password: string): Promise<string> {
    const { memoryKib, passes } = this.cost;
    return this.inTurn(() =>
      Bun.password.hash(password, {
        algorithm: "argon2id",
        memoryCost: memoryKib,
        timeCost: passes,
      }),
    );
  }

  verify({ password, hash }: { password: string; hash: string }): Promise<boolean> {
    return this.inTurn(() => Bun.password.verify(password, hash));
  }

  private async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.running >= parallelMax)
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }
}
