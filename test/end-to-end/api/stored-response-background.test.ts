import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  namesIn,
  ScriptedBackground,
  type ScriptedRun,
} from "../../support/scripted-background.ts";
import { queuedJob, recordOf, responseId } from "../../support/stored-responses.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startStoredResponses, type StoredResponsesGateway } from "./stored-responses-gateway.ts";

let script: ScriptedBackground;
let stage: StoredResponsesGateway;
beforeAll(async () => {
  script = new ScriptedBackground();
  stage = await startStoredResponses(script.run);
});
afterAll(() => stage.stop());

let count = 0;
async function begin(): Promise<{ id: string; run: ScriptedRun; path: string }> {
  const id = responseId(++count);
  await stage.gateway.app.background.submit(queuedJob(id));
  return { id, run: await script.nth(count), path: `/responses/${id}` };
}

const json = async (method: string, path: string): Promise<unknown> =>
  (await stage.ask(method, path)).json();

/** Reads a stream event by event, without the comments before them. */
async function follow(path: string) {
  const response = await stage.ask("GET", path);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const reader = (response.body ?? new Blob([]).stream())
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = "";
  return {
    async next(): Promise<string | undefined> {
      while (!text.includes("\n\n")) {
        const { value } = await reader.read();
        if (value === undefined) return undefined;
        text = (text + value).replace(/^(?::.*\n)+/, "");
      }
      const frame = text.slice(0, text.indexOf("\n\n") + 2);
      text = text.slice(frame.length);
      return frame;
    },
    leave: () => reader.cancel(),
  };
}

test("a stream follows events as they arrive, from any event on, and replays them afterwards", async () => {
  const { id, run, path } = await begin();
  expect(await json("GET", path)).toMatchObject({ id, status: "in_progress" });
  run.event("response.created", { response: { id } });
  const follower = await follow(`${path}?stream=true`);
  expect(await follower.next()).toBe(
    `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"${id}"}}\n\n`,
  );
  const later = await follow(`${path}?stream=true&starting_after=0`);
  run.event("response.in_progress");
  for (const each of [follower, later])
    expect(namesIn((await each.next()) ?? "")).toEqual(["1 response.in_progress"]);
  await later.leave();
  run.complete("Hello");
  const end = ["2 response.completed", "3 response.service.metadata"];
  for (const name of end) expect(namesIn((await follower.next()) ?? "")).toEqual([name]);
  expect(await follower.next()).toBeUndefined();
  expect(await json("GET", path)).toEqual(recordOf(id, { output_text: "Hello" }));
  const replayed = async (query: string) =>
    namesIn(await (await stage.ask("GET", `${path}?stream=true${query}`)).text());
  expect(await replayed("")).toEqual(["0 response.created", "1 response.in_progress", ...end]);
  expect(await replayed("&starting_after=1")).toEqual(end);
  expect(await replayed("&starting_after=3")).toEqual([]);
});

test("cancelling aborts the work, is idempotent and returns an ended response unchanged", async () => {
  const { id, run, path } = await begin();
  run.signal.addEventListener("abort", () => run.reject(run.signal.reason));
  const cancelled = await json("POST", `${path}/cancel`);
  expect(cancelled).toMatchObject({ id, object: "response", status: "cancelled", error: null });
  expect(run.signal.aborted).toBe(true);
  expect(await json("POST", `${path}/cancel`)).toEqual(cancelled);
  expect(await json("GET", path)).toEqual(cancelled);
  const whole = await begin();
  whole.run.complete();
  await stage.gateway.app.background.untilIdle();
  expect(await json("POST", `${whole.path}/cancel`)).toEqual(
    recordOf(whole.id, { output_text: "done" }),
  );
});

test("deleting aborts the work and ends the streams that follow it", async () => {
  const { run, path } = await begin();
  run.signal.addEventListener("abort", () => run.reject(run.signal.reason));
  run.event("response.created");
  const follower = await follow(`${path}?stream=true`);
  expect(namesIn((await follower.next()) ?? "")).toEqual(["0 response.created"]);
  expect(await json("DELETE", path)).toMatchObject({ deleted: true });
  expect(run.signal.aborted).toBe(true);
  expect(await errorOf(await stage.ask("GET", path))).toMatchObject({ status: 404 });
  expect(namesIn((await follower.next()) ?? "")).toEqual(["1 response.failed"]);
  expect(await follower.next()).toBeUndefined();
});
