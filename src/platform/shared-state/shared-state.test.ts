import { afterAll, describe, expect, test } from "bun:test";
import { freshRedis, hasRedis, redisMissing } from "../../../test/support/redis.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { SharedState } from "./shared-state.ts";

/** Lets this process do nothing else for longer than a command may take. */
function standStill(): void {
  for (const endMs = performance.now() + 1_500; performance.now() < endMs; );
}

describe.skipIf(!hasRedis)(`the server of shared state (on Valkey)${redisMissing}`, () => {
  let shared: SharedState;
  afterAll(() => shared.close());

  test("it is there for a gateway that stood still itself while the answer came", async () => {
    shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    const { runId } = shared;
    await shared.set("kept", "text", 60_000);
    for (let round = 0; round < 3; round += 1) {
      const answer = shared.get("kept");
      standStill();
      expect(await answer).toBe("text");
    }
    expect(shared.runId).toBe(runId);
  }, 60_000);
});
