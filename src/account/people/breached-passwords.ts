import { GatewayError } from "../../platform/lib/errors.ts";

/** How long the list is waited for. */
const timeoutMs = 3_000;
/** Largest answer that is read: some 1,000 lines of 40 characters are usual. */
const answerBytesMax = 256 * 1024;

/** Where the list of breached passwords is asked, and who hears of it where it cannot be. */
export interface BreachedPasswordsOptions {
  /** Base URL of a range API as Have I Been Pwned serves it; absent turns the check off. */
  url: string | undefined;
  onError(error: unknown): void;
}

/**
 * Refuses passwords that are known from breaches (NIST SP 800-63B, section 3.1.1.2). The list is asked for the first five digits
 * of the SHA-1 hash alone, so it does not learn the password. Where it cannot be asked, the password is accepted and the failure
 * is logged: nobody should be locked out by another service's outage.
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
