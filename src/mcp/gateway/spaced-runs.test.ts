import { expect, test } from "bun:test";
import { pollUntil } from "../../../test/support/poll-until.ts";
import { SpacedRuns } from "./spaced-runs.ts";

test("a flood runs once at once and once more, and the last of it is run", async () => {
  const runs = new SpacedRuns(20);
  const ran: number[] = [];
  for (let index = 0; index < 100; index += 1) runs.run("docs", () => ran.push(index));
  runs.run("wiki", () => ran.push(-1));
  expect(ran).toEqual([0, -1]);
  await pollUntil(() => ran.length > 2);
  expect(ran).toEqual([0, -1, 99]);
});
