import { createSecretKey, hkdfSync } from "node:crypto";
import type { SealingKey } from "./envelope.ts";

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
 * Master keys derived from 32-byte secrets (HKDF, RFC 5869), so that the same secret may serve other purposes.
 * What the previous ones have wrapped is wrapped anew with the current one when the gateway starts.
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
