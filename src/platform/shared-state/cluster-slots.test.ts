import { expect, test } from "bun:test";
import { partCount, partIndexOf, partTags, readSlots, slotOf } from "./cluster-slots.ts";

test("slotOf returns the slot of the cluster specification", () => {
  // Appendix A gives 0x31C3 as the CRC16 of "123456789"; the other slot is what CLUSTER KEYSLOT
  // returns.
  expect([slotOf("123456789"), slotOf("somekey")]).toEqual([0x31_c3, 11_058]);
});

test("every part has its own tag, and its slot is in the range of the part", () => {
  const tags = partTags();
  expect(tags).toHaveLength(partCount);
  expect(tags.map(partIndexOf)).toEqual(Array.from({ length: partCount }, (_, index) => index));
  // Every release has to find a cluster's data under these names, so they must not change.
  expect(tags.slice(0, 8)).toEqual(["10", "18", "113", "342", "29", "21", "3", "122"]);
});

test("readSlots returns the primary of a slot, with the asked host if none is given", () => {
  const slots = readSlots(
    [
      [0, 99, ["10.0.0.1", 7000, "a", ["hostname", "one"]], ["10.0.0.2", 7001, "b"]],
      [100, 200, [null, 7002, "c"]],
      [201, 201, ["?", 7003, "d"]],
    ],
    "asked",
  );
  expect([0, 99, 100, 201, 202].map(slots.ownerOf)).toEqual([
    { host: "10.0.0.1", port: 7000 },
    { host: "10.0.0.1", port: 7000 },
    { host: "asked", port: 7002 },
    { host: "asked", port: 7003 },
    undefined,
  ]);
  expect(slots.nodes).toHaveLength(4);
});
