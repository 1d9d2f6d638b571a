import { expect, test } from "bun:test";
import { z } from "zod";
import { loadConfiguration } from "./load-configuration.ts";

const load = (environment: Record<string, string>, yaml = "") =>
  loadConfiguration({
    environment,
    workingDirectory: "/srv",
    providerSchema: async () => z.unknown(),
    readFile: () => yaml,
  });

const urls = ["redis://:pw@one:26379", "redis://:pw@two"];

test("sentinels come from the file, or from a variable that takes precedence", async () => {
  const yaml = `shared: { url: redis://mymaster, sentinels: ["${urls.join('", "')}"] }\n`;
  expect((await load({}, yaml)).shared).toEqual({ url: "redis://mymaster", sentinels: urls });
  const { shared } = await load({ REDIS_SENTINEL_URLS: "rediss://a:1, rediss://b:2" }, yaml);
  expect(shared.sentinels).toEqual(["rediss://a:1", "rediss://b:2"]);
});

const expected = "expected redis://HOST:26379 or rediss://USER:PASSWORD@HOST:26379 of a sentinel";
const otherLogin = "expected the scheme, user and password of the sentinel before it";

test.each([
  ["- 10.0.0.1:26379", `switchyard.yaml:4 shared.sentinels[0]: ${expected}, got "10.0.0.1:26379"`],
  ["- redis://h/1", `switchyard.yaml:4 shared.sentinels[0]: ${expected}, got "redis://h/1"`],
  [
    "- redis://:pw@a\n    - redis://:other@b",
    `switchyard.yaml:5 shared.sentinels[1]: ${otherLogin}, got "redis://***@b"`,
  ],
  ["[]", "switchyard.yaml:3 shared.sentinels: expected at least one sentinel, got a list"],
])("%p in the file is refused with its line", async (list, message) => {
  const yaml = `shared:\n  url: redis://mymaster\n  sentinels:\n    ${list}\n`;
  await expect(load({}, yaml)).rejects.toThrow(message);
});

test("an invalid variable, or sentinels without a primary name, are refused", async () => {
  await expect(load({ REDIS_SENTINEL_URLS: "redis://a:1,redis://:pw@b:2" })).rejects.toThrow(
    `REDIS_SENTINEL_URLS: ${otherLogin}, got "redis://***@b:2"`,
  );
  await expect(load({ REDIS_SENTINEL_URLS: "redis://a:1" })).rejects.toThrow(
    "shared.sentinels: sentinels need the name of the primary that they watch",
  );
});
