import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { boundedLogger, createLogger } from "./logger.ts";

test("boundedLogger writes 20 warnings or errors a minute per message, then the number left out", () => {
  const lines: string[] = [];
  const clock = new FakeClock();
  const logger = boundedLogger(
    createLogger({ level: "info", write: (line) => void lines.push(line) }),
    clock,
  );
  for (let index = 0; index < 30_000; index += 1) logger.error({ index }, "the disk is full");
  logger.warn({}, "another cause");
  for (let index = 0; index < 50; index += 1) logger.info({}, "no trouble");
  expect(lines).toHaveLength(20 + 1 + 50);
  clock.advance(60_000);
  logger.error({}, "the disk is full");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
    left_out: 29_980,
    msg: "the disk is full",
  });
});
