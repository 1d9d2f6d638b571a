import {
  type KeyObject,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  randomBytes,
} from "node:crypto";

/** A 256-bit key, and the id by which sealed texts name it. */
export interface SealingKey {
  id: string;
  /** Held outside the script's own heap. */
  key: KeyObject;
}

const algorithm = "aes-256-gcm";
const version = "v1";
/** Bytes of the nonce and of the tag (NIST SP 800-38D, 8.2.2 and 5.2.1.2). */
const nonceBytes = 12;
const tagBytes = 16;

/** What a sealed text is bound to: opened with any other binding it is refused. */
export type Binding = readonly string[];

const boundBytes = (binding: Binding): Buffer => Buffer.from(JSON.stringify(binding), "utf8");

/** Encrypts bytes: `v1|key id|nonce|ciphertext and tag`, the last two in base64url. */
export function seal(
  { id, key }: SealingKey,
  { plain, binding }: { plain: Uint8Array; binding: Binding },
): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(boundBytes(binding));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  return [version, id, nonce.toString("base64url"), sealed.toString("base64url")].join("|");
}

/**
 * The id of the key that a text was sealed with; undefined where it is no sealed text of a known
 * version.
 */
export function sealingKeyIdOf(sealed: string): string | undefined {
  const [written, id, ...rest] = sealed.split("|");
  return written === version && rest.length === 2 ? id : undefined;
}

/**
 * Decrypts a sealed text. Throws where the key, the binding or the text is not the one it was
 * sealed with.
 */
export function open(
  { key }: SealingKey,
  { sealed, binding }: { sealed: string; binding: Binding },
): Buffer {
  const [, , nonce = "", body = ""] = sealed.split("|");
  const bytes = Buffer.from(body, "base64url");
  const decipher = createDecipheriv(algorithm, key, Buffer.from(nonce, "base64url"), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(boundBytes(binding));
  decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
  return Buffer.concat([
    decipher.update(bytes.subarray(0, bytes.length - tagBytes)),
    decipher.final(),
  ]);
}

/** The keys that wrap workspaces' data keys: the one that wraps now, and all that may unwrap. */
export interface MasterKeys {
  current: SealingKey;
  byId: ReadonlyMap<string, SealingKey>;
}

const keyOf = (secret: Uint8Array): SealingKey => {
  const derive = (purpose: string, length: number): Buffer =>
    Buffer.from(hkdfSync("sha256", secret, "", purpose, length));
  return {
    id: derive("switchyard provider keys id v1", 8).toString("hex"),
    key: createSecretKey(derive("switchyard provider keys v1", 32)),
  };
};

/**
 * Master keys derived from 32-byte secrets (HKDF, RFC 5869), so that the same secret may serve
 * other purposes. What the previous ones have wrapped is wrapped again with the current one when
 * the gateway starts.
 */
export function createMasterKeys({
  current,
  previous,
}: {
  current: Uint8Array;
  previous: readonly Uint8Array[];
}): MasterKeys {
  const newest = keyOf(current);
  return {
    current: newest,
    byId: new Map([...previous.map(keyOf), newest].map((key) => [key.id, key])),
  };
}
