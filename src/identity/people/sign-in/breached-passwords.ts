import { GatewayError } from "../../../platform/kernel/errors.ts";

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
  constructor(private readonly options: BreachedPasswordsOptions) {}

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
