import { expect, test } from "bun:test";
import { dayMs, systemClock } from "../../kernel/clock.ts";
import { migrations } from "./index.ts";

test("names begin with a date that has come, so that tomorrow's migration sorts after them", () => {
  const tomorrow = new Date(systemClock.nowMs() + dayMs).toISOString().slice(0, 10);
  for (const { name } of migrations) {
    expect(name).toMatch(/^\d{4}-\d{2}-\d{2}-[a-z]/);
    expect(name < tomorrow).toBe(true);
  }
});
