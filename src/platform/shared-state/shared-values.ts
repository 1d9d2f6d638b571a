import type { SharedParts, SharedScript } from "./shared-state.ts";

/**
 * Keeps an entry and forgets those that end soonest while there are more bytes than allowed. Keys:
 * the entry, the index by the time of its end, and the sizes. Values: the prefix of entries, the
 * name, the text, its lifetime in milliseconds, the bound in bytes.
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
 * Values that the gateways of one database share for a time, bounded in bytes; they may be lost at
 * any time.
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
    // Each part has its share, since a script sees no more than one of them.
    this.bytesMax = Math.floor(bytesMax / shared.parts.length);
  }

  /** What is kept under a key; undefined where nothing is. */
  async get(key: string): Promise<Value | undefined> {
    const name = `${this.name}:${key}`;
    const text = await this.shared.partOf(name).get(name);
    return text === null ? undefined : (JSON.parse(text) as Value);
  }

  /** Keeps a value for a time; one that would take a quarter of the room of its part is not kept. */
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
