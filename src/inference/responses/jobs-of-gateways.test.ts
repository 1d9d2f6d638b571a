import { describe, expect, test } from "bun:test";
import {
  engines,
  queuedJob,
  responseId,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import type { Leases } from "../../platform/shared-state/shared-leases.ts";
import { JobStore } from "./job-store.ts";

/** Leases of gateways that see the same holders. */
const leasesOf = (node: string, holders: Map<string, string>): Leases => ({
  async take(name) {
    if ((holders.get(name) ?? node) !== node) return false;
    holders.set(name, node);
    return true;
  },
  holds: (name) => holders.get(name) === node,
  release: (name) => void (holders.get(name) === node && holders.delete(name)),
});

describe.each(engines)("background jobs of two gateways on %s", (engine) => {
  const stores = storesOn(engine);

  test("belong to one gateway while it lives, and are restarted by another after its death", async () => {
    const { storage, responses } = stores.current();
    const holders = new Map<string, string>();
    const [one, other] = ["one", "other"].map(
      (node) => new JobStore(storage.database, leasesOf(node, holders)),
    ) as [JobStore, JobStore];
    const [running, queued] = [responseId(1), responseId(2)];
    for (const id of [running, queued]) await responses.insert(queuedJob(id));
    expect(await one.take(running)).toMatchObject({ keyId: "key_a" });
    expect(await other.take(running)).toBeUndefined();
    expect([await other.recover(), await one.recover()]).toEqual([[queued], [queued]]);
    holders.clear();
    expect(await other.recover()).toEqual([running, queued]);
    expect([await other.take(running), await one.take(running)]).toMatchObject([
      { keyId: "key_a" },
      undefined,
    ]);
  });
});
