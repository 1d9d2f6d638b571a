import { afterAll, describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { rmSync } from "node:fs";
import { freshRedis, hasRedis, redisMissing, startRedis } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { pollUntil } from "../../../test/support/poll-until.ts";
import { SharedState } from "./shared-state.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";

describe.skipIf(!hasRedis)(`shared state (on Valkey)${redisMissing}`, () => {
  let shared: SharedState;
  afterAll(() => shared.close());

  test("stays available if the gateway itself was blocked while the response arrived", async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    const { runId } = shared;
    await shared.set("kept", "text", 60_000);
    for (const milliseconds of [1_500, 1_500, 6_000]) {
      const answer = shared.get("kept");
      // Blocks the process for longer than a command may take.
      Bun.sleepSync(milliseconds);
      expect(await answer).toBe("text");
    }
    expect(shared.runId).toBe(runId);
  }, 240_000);
});

/** Reasons for which a server refuses writes but answers everything else, and how each one ends. */
const refusals = [
  ["NOREPLICAS", "min-replicas-to-write", "1", "0"],
  ["OOM", "maxmemory", "1", "0"],
  ["MISCONF", "stop-writes-on-bgsave-error", "yes", "no"],
] as const;

/** Makes a server fail to save a snapshot, because its directory is gone. */
async function failToSave(admin: Redis): Promise<void> {
  const [, directory] = (await admin.config("GET", "dir")) as [string, string];
  rmSync(directory, { recursive: true });
  await admin.bgsave();
  await pollUntil(async () => /^rdb_last_bgsave_status:err/m.test(await admin.info("persistence")));
}

describe.skipIf(!hasRedis)(`a server that refuses writes (on Valkey)${redisMissing}`, () => {
  test.each(refusals)(
    "with %s causes a warning at the start, is unavailable later, and recovers by itself",
    async (code, setting, refusing, taking) => {
      const server = await startRedis({ [setting]: refusing, save: "3600 1" });
      const admin = new Redis(server.url);
      if (code === "MISCONF") await failToSave(admin);
      const set = (value: string) => admin.config("SET", setting, value);
      const warnings: { reason?: string; message: string }[] = [];
      const warn = (fields: object, message: string): void =>
        void warnings.push({ ...fields, message });
      const shared = await SharedState.open({ url: server.url, logger: { ...silentLogger, warn } });
      const runs = (count: number): Promise<void> =>
        new Promise((resolve) => {
          let left = count;
          const forget = shared.onRun(() => {
            left -= 1;
            if (left > 0) return;
            queueMicrotask(() => forget());
            resolve();
          });
        });
      const takesNoWrites = {
        reason: expect.stringContaining(code) as string,
        message: "the server of shared state takes no writes",
      };
      expect(warnings).toEqual([takesNoWrites]);

      await set(taking);
      while (!(await shared.setIfAbsent("kept", "text", 60_000).catch(() => undefined)));
      await set(refusing);
      warnings.length = 0;
      const back = runs(2);
      await expect(shared.set("kept", "other", 60_000)).rejects.toThrow(SharedStateAwayError);
      expect(shared.runId).toBeUndefined();
      await pollUntil(() => warnings.length >= 2);
      expect(warnings).toEqual([
        { ...takesNoWrites, message: "the server of shared state is away" },
        takesNoWrites,
      ]);
      await set(taking);
      await back;
      await shared.set("kept", "other", 60_000);
      expect(await shared.get("kept")).toBe("other");
      shared.close();
      admin.disconnect();
      await server.kill();
    },
    240_000,
  );
});
