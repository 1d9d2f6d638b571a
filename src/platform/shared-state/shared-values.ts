import type { SharedParts, SharedScript } from "./shared-state.ts";

/**
 * Stores an entry, then deletes the entries that expire soonest while the total exceeds the limit.
 * Keys: the entry, the index by time of expiry, and the sizes. Values: the prefix of entries, the
 * name, the text, its lifetime in milliseconds, and the limit in bytes.
 */
const keepScript: SharedScript = {
  name: "switchyardKeepValue",
  lua: `
local index, sizes = KEYS[2], KEYS[3]
local prefix, name, text, lifetime, bound = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function forget(names)
  for _, each in ipairs(names) do
    redis.call('DEL', prefix .. each)
    local size = tonumber(redis.call('HGET', sizes, each))
    if size then
      redis.call('HINCRBY', sizes, '', -size)
      redis.call('HDEL', sizes, each)
    end
    redis.call('ZREM', index, each)
  end
end
forget({name})
forget(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, 100))
local bytes = #text + 2 * #name + 200
redis.call('SET', prefix .. name, text, 'PX', lifetime)
redis.call('ZADD', index, now + lifetime, name)
redis.call('HSET', sizes, name, bytes)
local total = redis.call('HINCRBY', sizes, '', bytes)
-- Both last as long as the entry that expires last.
local kept = math.max(redis.call('PTTL', index), tonumber(lifetime))
redis.call('PEXPIRE', index, kept)
redis.call('PEXPIRE', sizes, kept)
while total > bound do
  local first = redis.call('ZRANGE', index, 0, 0)
  if #first == 0 then
    redis.call('DEL', sizes)
    break
  end
  forget(first)
  total = tonumber(redis.call('HGET', sizes, '')) or 0
end
return 0`,
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
