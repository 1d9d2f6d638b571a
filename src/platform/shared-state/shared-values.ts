import type { SharedParts } from "./shared-state.ts";
import keepText from "./scripts/keep-value.lua" with { type: "text" };
import type { SharedScript } from "./redis-client.ts";

/**
 * Stores an entry, then deletes the entries that expire soonest while the total exceeds the limit.
 * Keys: the entry, the index by time of expiry, and the sizes. Values: the prefix of entries, the
 * name, the text, its lifetime in milliseconds, and the limit in bytes.
 */
const keepScript: SharedScript = {
  name: "switchyardKeepValue",
  lua: keepText,
};

/**
 * Values that the gateways on one database share for a limited time and within a limit of bytes.
 * Any value may be lost at any time.
 */
export class SharedValues<Value> {
  private readonly shared: Pick<SharedParts, "parts" | "partOf">;
  private readonly name: string;
  private readonly bytesMax: number;

  constructor({
    shared,
    name,
    bytesMax,
  }: {
    shared: Pick<SharedParts, "parts" | "partOf">;
    name: string;
    bytesMax: number;
  }) {
    this.shared = shared;
    this.name = name;
    // Divides the limit among the parts, since a script sees only one of them.
    this.bytesMax = Math.floor(bytesMax / shared.parts.length);
  }

  /** Returns the value under a key; undefined where there is none. */
  async get(key: string): Promise<Value | undefined> {
    const name = `${this.name}:${key}`;
    const text = await this.shared.partOf(name).get(name);
    return text === null ? undefined : (JSON.parse(text) as Value);
  }

  /**
   * Stores a value for a number of seconds, unless it would take a quarter of its part's room or
   * more.
   */
  async set(key: string, value: Value, ttlSeconds: number): Promise<void> {
    const text = JSON.stringify(value);
    if (text.length * 4 > this.bytesMax) return;
    const name = `${this.name}:${key}`;
    const part = this.shared.partOf(name);
    await part.run(keepScript, {
      keys: [name, `${this.name}-index`, `${this.name}-sizes`],
      values: [`${part.prefix}${this.name}:`, key, text, ttlSeconds * 1000, this.bytesMax],
    });
  }
}
