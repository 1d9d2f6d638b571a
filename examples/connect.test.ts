import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { PeopledGateway } from "../test/end-to-end/api/people-browser.ts";
import { decideDevice } from "../test/end-to-end/consent/flows.ts";
import {
  approveAt,
  firstMatch,
  startPeopledMcp,
} from "../test/end-to-end/mcp/conformance/peopled-mcp.ts";

let people: PeopledGateway;
beforeAll(async () => {
  people = await startPeopledMcp();
}, 240_000);
afterAll(() => people.stop());

const start = (file: string) =>
  Bun.spawn([process.execPath, join(import.meta.dir, file)], {
    env: { ...process.env, SWITCHYARD_URL: people.gateway().origin, MODEL: undefined },
    stdout: "pipe",
    stderr: "inherit",
  });

test.each([
  ["connect-app.ts", ['You wrote: "Hello"']],
  ["connect-agent.ts", ["tools: list_models, ", "get_credits", 'credits: {"balance":']],
])("%s opens a page and is connected once a person approves", async (file, expected) => {
  const child = start(file);
  const { match, rest } = await firstMatch(child.stdout, /^Open \S+$/m);
  expect((await approveAt(people.owner, match.slice("Open ".length))).status).toBe(200);
  const output = await rest;
  for (const text of expected) expect(output).toContain(text);
  expect(await child.exited).toBe(0);
});

test("connect-cli.ts shows a code and is connected once a person approves it", async () => {
  const child = start("connect-cli.ts");
  const { match, rest } = await firstMatch(child.stdout, /[A-Z]{4}-[A-Z]{4}$/m);
  expect((await decideDevice(people.owner, match)).status).toBe(200);
  expect(await rest).toContain('You wrote: "Hello"');
  expect(await child.exited).toBe(0);
});
