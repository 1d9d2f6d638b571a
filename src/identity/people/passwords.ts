import { GatewayError } from "../../platform/kernel/errors.ts";

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
  private readonly cost: HashCost;
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(cost: HashCost = recommendedCost) {
    this.cost = cost;
  }

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

/** Milliseconds to wait for the list's answer. */
const timeoutMs = 3_000;
/** The most bytes of an answer. Some 1,000 lines of 40 characters are usual. */
const answerBytesMax = 256 * 1024;

/**
 * The address of the list of breached passwords, and the callback for when it cannot be reached.
 */
interface BreachedPasswordsOptions {
  /** The base URL of a range API like Have I Been Pwned's; absent turns the check off. */
  url: string | undefined;
  onError(error: unknown): void;
}

/**
 * Refuses passwords that are known from breaches (NIST SP 800-63B, section 3.1.1.2). Only the first
 * five digits of the SHA-1 hash are sent, so the list does not learn the password. Where it cannot
 * be reached, the password is accepted and the failure is logged: another service's outage should
 * not lock users out.
 */
export class BreachedPasswords {
  private readonly options: BreachedPasswordsOptions;

  constructor(options: BreachedPasswordsOptions) {
    this.options = options;
  }

  /** Throws `bad_request` for a password that is on the list. */
  async assertUnknown(password: string): Promise<void> {
    if (this.options.url === undefined) return;
    const digest = new Bun.CryptoHasher("sha1").update(password).digest("hex").toUpperCase();
    const lines = await this.linesFor(digest.slice(0, 5)).catch((error: unknown) =>
      this.options.onError(error),
    );
    const isKnown = lines?.some((line) => {
      const [suffix, count] = line.trim().split(":");
      // Padding lines have the count 0.
      return suffix === digest.slice(5) && Number(count) > 0;
    });
    if (!isKnown) return;
    throw new GatewayError(
      "bad_request",
      "This password is known from a data breach, so others will try it. Choose another one.",
      {
        param: "password",
        metadata: { reason: "breached_password" },
      },
    );
  }

  private async linesFor(prefix: string): Promise<string[]> {
    const response = await fetch(`${this.options.url?.replace(/\/$/, "")}/range/${prefix}`, {
      headers: { "add-padding": "true" },
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) throw new Error(`the list of breached passwords answered ${response.status}`);
    const text = await response.text();
    if (text.length > answerBytesMax)
      throw new Error("the list of breached passwords answered too much");
    return text.split("\n");
  }
}

/** Bounds of new passwords, in characters. The upper one limits the cost of hashing. */
export const passwordCharactersMin = 10;
export const passwordCharactersMax = 256;
