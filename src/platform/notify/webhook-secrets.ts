import { hkdfSync } from "node:crypto";

/** The prefix of webhook secrets. */
const prefix = "whsec_";

/**
 * The secrets that sign webhooks. They are derived from the encryption key (HKDF, RFC 5869) for a
 * record and a version, so the database holds none, and incrementing the version rotates one.
 */
export class WebhookSecrets {
  constructor(private readonly encryptionKey: Uint8Array) {}

  /** Returns the secret of a record's webhook. */
  secretOf({ id, version }: { id: string; version: number }): string {
    const derived = hkdfSync(
      "sha256",
      this.encryptionKey,
      "",
      `switchyard webhook signing v1 ${id} ${version}`,
      32,
    );
    return prefix + Buffer.from(derived).toString("base64url");
  }
}
