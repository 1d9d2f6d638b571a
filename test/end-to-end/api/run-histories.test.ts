import { afterAll, beforeAll, describe, test } from "bun:test";
import fc from "fast-check";
import { acme } from "../../support/gateway.ts";
import { runHistory, RunHistory, type RunStage } from "../../support/run-history.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { isNightly } from "../../support/nightly.ts";
import { textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

/** Histories; thirty with `--engines=all`. */
const histories = isNightly ? 30 : 6;

describe.each(engines)("random histories of runs on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, { providers: [acme(upstream.baseUrl)] });
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const stage: RunStage = {
    unitUsd: 0.000001,
    chat: chatRequest({ max_tokens: 7 }),
    async ask(secret, method, path, body) {
      const answer = await workspaces.as(secret)(method, path, body);
      return { status: answer.status, body: await answer.json() };
    },
    async makeKey(limit) {
      const made = await workspaces.own("POST", "/keys", { name: "agents", limit });
      return textAt(await made.json(), "key");
    },
  };

  test("no run passes its limit, and what it leaves goes back, also after a restart", async () => {
    await fc.assert(
      fc.asyncProperty(runHistory, fc.boolean(), async (steps, restarts) => {
        const history = await RunHistory.begin(stage);
        for (const [index, step] of steps.entries()) {
          if (restarts && index === 2) await workspaces.restart();
          await history.step(step);
        }
        await history.end();
      }),
      { numRuns: histories, endOnFailure: true },
    );
  }, 600_000);
});
