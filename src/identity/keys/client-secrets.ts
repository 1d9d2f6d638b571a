import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** The prefix of client secrets, by which OpenAI's clients know that a browser may have them. */
export const clientSecretPrefix = "ek_";

/** What a client secret is good for. */
export interface ClientSecret {
  /** The key that made it, whose limits apply. */
  keyId: string;
  /** The only model of its session. */
  model: string;
  /** The model that transcribes what is said in its session, where there is one. */
  transcription?: string | undefined;
  /** The wall time at which it ends. */
  expiresAtMs: number;
  /** The settings that its session begins with. */
  session: Readonly<Record<string, unknown>>;
}

const ivBytes = 12;
const tagBytes = 16;
const cipherName = "aes-256-gcm";

/** The most characters of a secret, so that a long text costs nothing. */
const charactersMax = 64 * 1024;

/**
 * Client secrets for browsers. Each is its own content, encrypted and authenticated, so that every
 * gateway with the same key opens it and nothing is stored.
 */
export class ClientSecrets {
  private readonly key: Uint8Array;

  constructor(encryptionKey: Uint8Array) {
    const info = "switchyard client secrets v1";
    this.key = new Uint8Array(hkdfSync("sha256", encryptionKey, "", info, 32));
  }

  /** Returns the secret's text. */
  issue(secret: ClientSecret): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(cipherName, this.key, iv);
    const sealed = Buffer.concat([cipher.update(JSON.stringify(secret), "utf8"), cipher.final()]);
    return (
      clientSecretPrefix + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")
    );
  }

  /** Returns what a secret is good for, even after its end; undefined where it was not issued here. */
  open(text: string): ClientSecret | undefined {
    if (!text.startsWith(clientSecretPrefix) || text.length > charactersMax) return undefined;
    const bytes = Buffer.from(text.slice(clientSecretPrefix.length), "base64url");
    if (bytes.length <= ivBytes + tagBytes) return undefined;
    const decipher = createDecipheriv(cipherName, this.key, bytes.subarray(0, ivBytes));
    decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
    try {
      const opened = decipher.update(bytes.subarray(ivBytes + tagBytes));
      return JSON.parse(Buffer.concat([opened, decipher.final()]).toString("utf8")) as ClientSecret;
    } catch {
      return undefined;
    }
  }
}
