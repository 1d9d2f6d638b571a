import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { type AllowedRange, IpAllowlist } from "./ip-allowlist.ts";
import { IpAllowlistEditor } from "./ip-allowlist-editor.ts";

const workspaceId = "ws_1";
const change = { workspaceId, callerAddress: "192.0.2.1", confirm: true };
const rangeOf = (id: string, cidr: string): AllowedRange => ({
  id,
  workspaceId,
  cidr,
  description: null,
  createdAtMs: 0,
});

/** Opens an allowlist whose entries another gateway replaces during every write. */
function openList({ before, during }: { before: AllowedRange[]; during: AllowedRange[] }) {
  const allowlist = new IpAllowlist();
  allowlist.put(workspaceId, before);
  const write = async (): Promise<void> => allowlist.put(workspaceId, during);
  const store = { insert: write, remove: write, list: async () => during };
  const editor = new IpAllowlistEditor({ store, allowlist, clock: new FakeClock() });
  return { editor, cidrs: () => allowlist.of(workspaceId).map(({ cidr }) => cidr) };
}

const theirs = rangeOf("ipa_2", "198.51.100.0/24");

test("adding a range keeps the one that another gateway added at the same time", async () => {
  const { editor, cidrs } = openList({ before: [], during: [theirs] });
  await editor.add(change, { cidr: "203.0.113.0/24", description: null });
  expect(cidrs()).toEqual(["203.0.113.0/24", "198.51.100.0/24"]);
});

test("removing ranges keeps the one that another gateway added at the same time", async () => {
  const own = rangeOf("ipa_1", "203.0.113.0/24");
  const removed = openList({ before: [own], during: [theirs, own] });
  await removed.editor.remove(change, own.id);
  expect(removed.cidrs()).toEqual([theirs.cidr]);
  const cleared = openList({ before: [own], during: [theirs, own] });
  await cleared.editor.clear(workspaceId);
  expect(cleared.cidrs()).toEqual([theirs.cidr]);
});
