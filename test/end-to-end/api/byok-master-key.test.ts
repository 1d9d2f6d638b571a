import { describe, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatRequest } from "./chat-request.ts";
import { seedStorage } from "./seed-storage.ts";
import { engines } from "./two-workspaces.ts";

const secret = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);

describe.each(engines)("the master key of provider keys, on %s", (_, freshUrl) => {
  test("can be rotated with a restart, after which the old key decrypts nothing", async () => {
    const upstream = await startFaultUpstream();
    const storage = await seedStorage({ workspaces: [{ id: "ws_own" }] }, await freshUrl());
    const solo = provider({
      id: "solo",
      base_url: upstream.baseUrl,
      models: [{ id: "solo/large" }],
    });
    const start = (current: number, ...previous: number[]): Promise<TestGateway> =>
      startGateway({
        ...storage.settings,
        providers: [solo],
        masterSecrets: { current: secret(current), previous: previous.map(secret) },
      });
    const serves = async (gateway: TestGateway): Promise<number> =>
      (await gateway.post("/chat/completions", chatRequest({ model: "solo/large" }))).status;
    const sealedRows = ({ app }: TestGateway) =>
      app.storage.database.selectFrom("provider_keys").select("sealed").execute();
    const wrappedRows = ({ app }: TestGateway) =>
      app.storage.database.selectFrom("workspace_data_keys").select("wrapped").execute();

    const first = await start(1);
    const added = await first.post(
      "/auth/byok",
      { provider_id: "solo", api_key: "sk-key-of-a-caller" },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    expect(added.status).toBe(200);
    expect(await serves(first)).toBe(200);
    const [sealed, wrapped] = [await sealedRows(first), await wrappedRows(first)];
    await first.stop();

    const second = await start(2, 1);
    expect(await serves(second)).toBe(200);
    expect(await sealedRows(second)).toEqual(sealed);
    expect(await wrappedRows(second)).not.toEqual(wrapped);
    await second.stop();

    const third = await start(2);
    expect(await serves(third)).toBe(200);
    await third.stop();
    await expect(start(1)).rejects.toThrow("SWITCHYARD_SECRETS_KEY");
    const sent = upstream.requests.map(({ headers }) => headers.get("authorization"));
    expect(sent).toEqual(Array.from({ length: 3 }, () => "Bearer sk-key-of-a-caller"));
    upstream.stop();
    storage.remove();
  }, 240_000);
});
