import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { faults, type FaultName } from "../../support/upstream/faults.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at } from "./support/at.ts";
import { costsIn, errorsIn, saidIn } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import {
  kindsOf,
  providerUnder,
  startFaultScenes,
  type FaultScenes,
} from "./support/fault-scenes.ts";
import { settledRow } from "./support/settled-rows.ts";

let scenes: FaultScenes;
beforeAll(async () => {
  scenes = await startFaultScenes({ withBackup: true });
  scenes.backup.script((request) => chatAnswer(request, { text: "from the backup" }));
});
afterEach(() => expectSoundBooks(scenes.gateway));
afterAll(() => scenes.stop());

/** The request itself is at fault, so no other provider would do better. */
const final: readonly FaultName[] = ["400"];

/** Why the contract says that the next provider was tried; everything else is `upstream_error`. */
const reasons: Partial<Record<FaultName, string>> = {
  "never answers": "timeout",
  "stall in the body": "timeout",
  "408": "timeout",
  "stall after the head": "timeout",
  "stall before content": "timeout",
  "heartbeats without end": "timeout",
  "401": "credential_error",
  "402": "credential_error",
  "403": "credential_error",
  "404": "model_unavailable",
  "429": "rate_limited",
  "429 with retry-after": "rate_limited",
};

/** Faults before which no head of an answer came. */
const headless: readonly FaultName[] = [
  "connection refused",
  "never answers",
  "closes before answering",
  "resets before answering",
  "cut in the head",
  "no HTTP at all",
];

/**
 * The status that the failed attempt is recorded with; errors inside a 200 stand for one of their
 * own.
 */
function statusSeen(name: FaultName): number | null {
  if (headless.includes(name)) return null;
  return faults[name].status ?? (name.includes("an error") ? 502 : 200);
}

const named = (effect: string): FaultName[] =>
  (Object.keys(faults) as FaultName[]).filter((name) => faults[name].effect === effect);

describe("before content, the next provider answers and the client sees no error", () => {
  for (const name of named("before-content").filter((each) => !final.includes(each))) {
    for (const kind of kindsOf(faults[name])) {
      test(`${kind}: ${name}`, async () => {
        const reply = await scenes.meet(faults[name], kind);
        expect([reply.status, saidIn(reply), errorsIn(reply)]).toEqual([
          200,
          "from the backup",
          [],
        ]);
        expect([reply.doneCount, costsIn(reply)]).toEqual([kind === "stream" ? 1 : 0, [0.000032]]);
        expect(reply.headers.get("x-service-provider-chain")).toBe(
          `${providerUnder(faults[name])}->backup`,
        );
        const row = await settledRow(scenes.gateway, reply.headers.get("x-service-trace-id"));
        expect(row).toMatchObject({ provider: "backup", status: "completed", costNano: 32_000n });
        expect(row?.detail.attempts).toMatchObject([
          {
            provider: providerUnder(faults[name]),
            outcome: "failed",
            reason: reasons[name] ?? "upstream_error",
            status: statusSeen(name),
          },
          { provider: "backup", outcome: "served", reason: null, status: 200 },
        ]);
      });
    }
  }
});

describe("after content, no other provider is asked", () => {
  for (const name of named("after-content")) {
    test(name, async () => {
      const asked = scenes.backup.requests.length;
      const reply = await scenes.meet(faults[name], "stream");
      expect(errorsIn(reply)).toHaveLength(1);
      expect(saidIn(reply)).not.toContain("backup");
      expect(scenes.backup.requests.length).toBe(asked);
      expect(reply.headers.get("x-service-provider-chain")).toBe(providerUnder(faults[name]));
    });
  }
});

describe("a request that is itself invalid is not retried", () => {
  for (const name of final) {
    for (const kind of kindsOf(faults[name])) {
      test(`${kind}: ${name}`, async () => {
        const asked = scenes.backup.requests.length;
        const reply = await scenes.meet(faults[name], kind);
        expect([reply.status, scenes.backup.requests.length]).toEqual([400, asked]);
        expect(at(reply.events[0], "error.metadata")).toMatchObject({
          fault: "upstream",
          upstream_backend: "acme",
        });
        expect(reply.headers.get("x-should-retry")).toBe("false");
      });
    }
  }
});
