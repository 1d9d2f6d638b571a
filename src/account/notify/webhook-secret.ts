import { createHmac, hkdfSync } from "node:crypto";

/** Prefix by which the secret of a webhook is known. */
const prefix = "whsec_";

/**
 * Secrets that webhooks are signed with. They are derived from the encryption key (HKDF, RFC 5869) for a record and a version, so the
 * database holds none, and rotating one is counting its version up.
 */
export class WebhookSecrets {
  private readonly encryptionKey: Uint8Array;

  constructor(encryptionKey: Uint8Array) {
    this.encryptionKey = encryptionKey;
  }

  /** The secret of a record's webhook. */
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

/** The signature header of a body: `t` is the time in seconds, `v1` HMAC-SHA256 of `<t>.<body>` in hexadecimal. */
export const signatureOf = ({
  secret,
  body,
  nowMs,
}: {
  secret: string;
  body: string;
  nowMs: number;
}): string => {
  const seconds = Math.floor(nowMs / 1000);
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
};
