import {
  createSecretKey,
  randomBytes,
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import { ConfigurationError } from "../config/configuration-error.ts";
import { assert } from "../kernel/assert.ts";
import type { Clock } from "../kernel/clock.ts";
import { KeyedMutex } from "../kernel/keyed-mutex.ts";
import type { WrappedDataKey, DataKeyStore } from "./data-key-store.ts";

/** A 256-bit key, and the id by which sealed texts name it. */
interface SealingKey {
  id: string;
  /** Held outside the JavaScript heap. */
  key: KeyObject;
}

const algorithm = "aes-256-gcm";

const version = "v1";

/** Bytes of the nonce and of the tag (NIST SP 800-38D, 8.2.2 and 5.2.1.2). */
const nonceBytes = 12;

const tagBytes = 16;

/** The context that a sealed text is bound to. Opening it with any other binding fails. */
type Binding = readonly string[];

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
 * Returns the id of the key that a text was sealed with; undefined where it is not a sealed text of
 * a known version.
 */
export function sealingKeyIdOf(sealed: string): string | undefined {
  const [written, id, ...rest] = sealed.split("|");
  return written === version && rest.length === 2 ? id : undefined;
}

/**
 * Decrypts a sealed text. Throws where the key, the binding or the text differs from what was
 * sealed.
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
interface MasterKeys {
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
 * Derives master keys from 32-byte secrets (HKDF, RFC 5869), so that the same secret may serve
 * other purposes. What the previous ones wrapped is wrapped again with the current one when the
 * gateway starts.
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

/** The place where a provider's key is stored. It can be opened for this place alone. */
interface KeyPlace {
  workspaceId: string;
  providerId: string;
  /** The `byok_` id of the record. */
  id: string;
}

/** Where a record's text is kept: it can be opened for this place alone. */
interface RecordPlace {
  workspaceId: string;
  /** Id of the record, such as a `gen_` id. */
  id: string;
  /** What else has to be the same when it is opened. */
  facts: readonly string[];
}

const dataKeyBytes = 32;

const wrapBinding = ({ workspaceId, id }: Pick<WrappedDataKey, "workspaceId" | "id">): Binding => [
  "data-key",
  workspaceId,
  id,
];

const keyBinding = ({ workspaceId, providerId, id }: KeyPlace): Binding => [
  workspaceId,
  providerId,
  id,
];

const recordBinding = ({ workspaceId, id, facts }: RecordPlace): Binding => [
  "record",
  workspaceId,
  id,
  ...facts,
];

/**
 * A record's own key. Random nonces are safe for 2^32 texts under one key (NIST SP 800-38D, 8.3),
 * which a workspace's requests would exceed.
 */
const recordKey = (dataKey: SealingKey, recordId: string): SealingKey => ({
  id: dataKey.id,
  key: createSecretKey(
    Buffer.from(hkdfSync("sha256", dataKey.key, recordId, "switchyard record v1", dataKeyBytes)),
  ),
});

/**
 * Encrypts provider keys and texts of records under a key of their workspace, which in turn is
 * stored wrapped by the master key: neither the rows nor the master key alone give anything away.
 * Data keys stay unwrapped in memory, provider keys do not.
 */
export class KeyVault {
  private readonly store: DataKeyStore;
  private readonly masterKeys: MasterKeys;
  private readonly clock: Clock;
  private readonly dataKeys = new Map<string, SealingKey>();
  private readonly mutex = new KeyedMutex();

  private constructor(options: { store: DataKeyStore; masterKeys: MasterKeys; clock: Clock }) {
    this.store = options.store;
    this.masterKeys = options.masterKeys;
    this.clock = options.clock;
  }

  /**
   * Unwraps every data key, and wraps those of an earlier master key with the current one, so that
   * the old one is no longer needed. Throws `ConfigurationError` where a master key is missing.
   */
  static async open(options: {
    store: DataKeyStore;
    masterKeys: MasterKeys;
    clock: Clock;
  }): Promise<KeyVault> {
    const vault = new KeyVault(options);
    for (const row of await options.store.loadAll()) await vault.take(row);
    return vault;
  }

  /**
   * Seals a provider's key for its place, under the workspace's data key, which is created where
   * there is none.
   */
  async seal(place: KeyPlace, secret: string): Promise<string> {
    const dataKey = await this.dataKeyOf(place.workspaceId);
    return seal(dataKey, { plain: Buffer.from(secret, "utf8"), binding: keyBinding(place) });
  }

  /**
   * Seals bytes of a record for its place, under a key of the record that is derived from the
   * workspace's data key, which is made where there is none.
   */
  async sealRecord(place: RecordPlace, plain: Uint8Array): Promise<string> {
    const dataKey = await this.dataKeyOf(place.workspaceId);
    return seal(recordKey(dataKey, place.id), { plain, binding: recordBinding(place) });
  }

  /** A record's bytes in clear. Throws where they are damaged or belong to another place. */
  openRecord(place: RecordPlace, sealed: string): Buffer {
    const dataKey = this.dataKeys.get(place.workspaceId);
    assert(
      dataKey !== undefined && sealingKeyIdOf(sealed) === dataKey.id,
      "a record is sealed under a data key that is not there",
    );
    return open(recordKey(dataKey, place.id), { sealed, binding: recordBinding(place) });
  }

  /**
   * The provider's key in clear. Throws where the sealed text is damaged or belongs to another
   * place.
   */
  open(place: KeyPlace, sealed: string): string {
    const dataKey = this.dataKeys.get(place.workspaceId);
    assert(
      dataKey !== undefined && sealingKeyIdOf(sealed) === dataKey.id,
      "a provider key is sealed under a data key that is not there",
    );
    return open(dataKey, { sealed, binding: keyBinding(place) }).toString("utf8");
  }

  /** Loads a workspace's data key that another gateway created. */
  async learn(workspaceId: string): Promise<void> {
    if (this.dataKeys.has(workspaceId)) return;
    const row = await this.store.find(workspaceId);
    if (row !== undefined) await this.take(row);
  }

  private async dataKeyOf(workspaceId: string): Promise<SealingKey> {
    return (
      this.dataKeys.get(workspaceId) ??
      (await this.mutex.run(workspaceId, () => this.make(workspaceId)))
    );
  }

  private async make(workspaceId: string): Promise<SealingKey> {
    await this.learn(workspaceId);
    return this.dataKeys.get(workspaceId) ?? (await this.makeFirst(workspaceId));
  }

  private async makeFirst(workspaceId: string): Promise<SealingKey> {
    const plain = randomBytes(dataKeyBytes);
    const id = randomBytes(8).toString("hex");
    const wrapped = seal(this.masterKeys.current, {
      plain,
      binding: wrapBinding({ workspaceId, id }),
    });
    try {
      await this.store.insert({ id, workspaceId, wrapped }, this.clock.nowMs());
    } catch (error) {
      // Another gateway may have been first; then its data key is the workspace's.
      await this.learn(workspaceId);
      const theirs = this.dataKeys.get(workspaceId);
      if (theirs === undefined) throw error;
      return theirs;
    }
    return this.keep(workspaceId, { id, plain });
  }

  private async take({ id, workspaceId, wrapped }: WrappedDataKey): Promise<void> {
    const masterKeyId = sealingKeyIdOf(wrapped) ?? "";
    const masterKey = this.masterKeys.byId.get(masterKeyId);
    if (masterKey === undefined) throw missingMasterKey(masterKeyId);
    const binding = wrapBinding({ workspaceId, id });
    const plain = open(masterKey, { sealed: wrapped, binding });
    const { current } = this.masterKeys;
    if (masterKeyId !== current.id)
      await this.store.rewrap(id, { from: wrapped, to: seal(current, { plain, binding }) });
    this.keep(workspaceId, { id, plain });
  }

  private keep(workspaceId: string, { id, plain }: { id: string; plain: Buffer }): SealingKey {
    const dataKey = { id, key: createSecretKey(plain) };
    plain.fill(0);
    this.dataKeys.set(workspaceId, dataKey);
    return dataKey;
  }
}

const missingMasterKey = (id: string): ConfigurationError =>
  new ConfigurationError([
    {
      key: "SWITCHYARD_SECRETS_KEY",
      message:
        `provider keys in the database are protected by a master key that is not given here (id ${id}); ` +
        "name it as SWITCHYARD_SECRETS_KEY_PREVIOUS, or as SWITCHYARD_SECRETS_KEY again",
    },
  ]);
