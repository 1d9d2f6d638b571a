import { GatewayError } from "../../platform/lib/errors.ts";

/** Hashes at the same time; each takes a thread and 19 MiB for some 20 ms, and requests need the machine too. */
const parallelMax = 2;
/** Hashes that may wait for their turn; who comes later is asked to come again. */
const waitingMax = 64;

/** OWASP's password storage cheat sheet (2026): argon2id with 19 MiB and two passes at least. */
const argon2id = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;

/** Makes and checks hashes of passwords, few at a time. */
export class PasswordHasher {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /** Throws `service_unavailable` where too many wait already; called before work that cannot be refused halfway. */
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

  /** A hash with its salt and parameters, as PHC text. */
  hash(password: string): Promise<string> {
    return this.inTurn(() => Bun.password.hash(password, argon2id));
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
