import { expect, test } from "bun:test";
import {
  isForeignReasoning,
  isReasoningDisabled,
  openProvenance,
  sealWithProvenance,
} from "./reasoning.ts";

test("a sealed signature keeps its provider through a round trip to the client", () => {
  const provenance = { providerId: "acme" };
  for (const seal of ["c2ln", "", "a:b:c", "gw1:x:y"]) {
    expect(openProvenance(sealWithProvenance(seal, provenance))).toEqual({ seal, provenance });
  }
  expect(sealWithProvenance("c2ln", undefined)).toBe("c2ln");
  for (const plain of ["c2ln", "gw1:", "gw1:nocolon", "gw2:a:b"])
    expect(openProvenance(plain)).toEqual({ seal: plain });
});

test("only reasoning of another provider is foreign", () => {
  expect(isForeignReasoning({ provenance: { providerId: "a" } }, "b")).toBe(true);
  expect(isForeignReasoning({ provenance: { providerId: "a" } }, "a")).toBe(false);
  expect(isForeignReasoning({}, "a")).toBe(false);
});

test("reasoning is disabled by effort none or enabled false, and enabled overrides effort (rules 1 and 2)", () => {
  const requests = [
    undefined,
    {},
    { effort: "low", enabled: false },
    { effort: "none" },
    { enabled: false },
    { enabled: true },
  ];
  expect(requests.map(isReasoningDisabled)).toEqual([false, false, true, true, true, false]);
});
