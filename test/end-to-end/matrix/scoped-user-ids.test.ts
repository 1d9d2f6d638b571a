import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type ProviderKeyScene,
  strangersLlmKey,
  startProviderKeys,
} from "../scenarios/support/provider-keys.ts";
import { fieldsOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, pairs, type Pair } from "./support/pairs.ts";

let scene: MatrixScene;
let keys: ProviderKeyScene;
beforeAll(async () => {
  scene = await startMatrix();
  keys = await startProviderKeys();
});
afterAll(async () => {
  await scene.end();
  await keys.stop();
});

const named = {
  user: "user-of-the-caller",
  safety_identifier: "safety-of-the-caller",
  prompt_cache_key: "cache-of-the-caller",
};
const idsOf: Readonly<Record<string, Fields>> = {
  "openai-chat": named,
  "openai-responses": named,
  "anthropic-messages": { metadata: { user_id: "user-of-the-caller" } },
};

async function sentFor({ client, upstream }: Pair): Promise<Fields> {
  await scene.ask(
    client,
    { ...client.ask("Hello"), ...idsOf[client.name] },
    { providers: [providerId(upstream)] },
  );
  return fieldsOf(scene.upstreams[upstream].requests.at(-1)?.json());
}

const hashed = /^[\w-]{43}$/;

test.each(pairs.map((pair) => [nameOf(pair), pair] as const))(
  "%s: ids of the caller's users are hashed, the same for the same id",
  async (_, pair) => {
    const sent = await sentFor(pair);
    expect(JSON.stringify(sent)).not.toContain("-of-the-caller");
    const ids = [
      sent["user"],
      sent["safety_identifier"],
      sent["prompt_cache_key"],
      fieldsOf(sent["metadata"])["user_id"],
    ].filter((id) => id !== undefined);
    for (const id of ids) expect(id).toMatch(hashed);
    if (pair.upstream !== "google-generate") expect(ids.length).toBeGreaterThan(0);
    const again = await sentFor(pair);
    expect([again["user"], again["metadata"]]).toEqual([sent["user"], sent["metadata"]]);
  },
);

/** The `user` that the upstream received for a workspace. */
async function userSeen(secret?: string): Promise<unknown> {
  await keys.chat({ user: "alice" }, secret);
  return fieldsOf(keys.upstream.requests.at(-1)?.json())["user"];
}

test("two workspaces share no id at a provider, and a caller's own key gets it as it is", async () => {
  const granted = await keys.manage("POST", "/admin/grants", {
    workspace_id: "ws_strange",
    amount: 1_000,
    bucket: "topup",
  });
  expect(granted.status).toBeLessThan(300);
  const [own, stranger] = [await userSeen(), await userSeen(strangersLlmKey)];
  expect([own, stranger]).toEqual([expect.stringMatching(hashed), expect.stringMatching(hashed)]);
  expect(own).not.toBe(stranger);
  await keys.add("sk-own-key-number-one");
  expect(await userSeen()).toBe("alice");
  expect(await userSeen(strangersLlmKey)).toBe(stranger);
});
