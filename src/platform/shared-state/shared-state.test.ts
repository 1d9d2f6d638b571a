import { afterAll, describe, expect, test } from "bun:test";
import { freshRedis, hasRedis, redisMissing } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { SharedState } from "./shared-state.ts";

describe.skipIf(!hasRedis)(`the server of shared state (on Valkey)${redisMissing}`, () => {
  let shared: SharedState;
  afterAll(() => shared.close());

  test("it is there for a gateway that stood still itself while the answer came", async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    const { runId } = shared;
    await shared.set("kept", "text", 60_000);
    for (const milliseconds of [1_500, 1_500, 6_000]) {
      const answer = shared.get("kept");
      // Nothing else runs meanwhile: it is longer than a command may take.
      Bun.sleepSync(milliseconds);
      expect(await answer).toBe("text");
    }
    expect(shared.runId).toBe(runId);
  }, 60_000);
});
