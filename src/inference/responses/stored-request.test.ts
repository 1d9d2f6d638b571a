import { describe, expect, test } from "bun:test";
import {
  answer,
  engines,
  newResponse,
  question,
  recordOf,
  responseId,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import { readAll } from "../../../test/support/scripted-background.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import { keepResponse, keptStream, queuedResponse, readStoredRequest } from "./stored-request.ts";

const previousResponseId = responseId(1);
const origin = { id: responseId(2), workspaceId: "ws_a", keyId: "key_a", createdAtMs: 1_000 };
const hello = { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] };

const sourceOf = (...frames: string[]): FrameSource => ({
  next: () => Promise.resolve(frames.shift()),
  cancel: () => undefined,
});
const frame = (name: string, fields: object): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...fields })}\n\n`;

describe.each(engines)("stored requests on %s", (engine) => {
  const stores = storesOn(engine);
  const store = () => stores.current().responses;
  const read = (body: Record<string, unknown>) =>
    readStoredRequest(store(), { body, workspaceId: "ws_a" });
  const count = async () =>
    (await stores.current().storage.database.selectFrom("stored_responses").select("id").execute())
      .length;

  test("are stored unless store is false, with text input as a message", async () => {
    expect(await read({ input: "Hello" })).toEqual({
      store: true,
      background: false,
      previousResponseId: null,
      inputItems: [hello],
      conversation: [hello],
      expanded: false,
    });
    expect(
      await read({
        input: [question("1")],
        store: null,
        background: null,
        previous_response_id: null,
      }),
    ).toMatchObject({
      store: true,
      background: false,
      previousResponseId: null,
      conversation: [question("1")],
      expanded: false,
    });
  });

  test("contain the earlier conversation for the model, and store only new items", async () => {
    await store().insert(
      newResponse(previousResponseId, {
        inputItems: [question("1")],
        record: { output: [answer("msg_1", "one")] },
      }),
    );
    const input = [{ type: "item_reference", id: "msg_1" }, question("2")];
    const request = await read({ input, previous_response_id: previousResponseId });
    expect(request).toMatchObject({
      previousResponseId,
      expanded: true,
      inputItems: [answer("msg_1", "one"), question("2")],
      conversation: [question("1"), answer("msg_1", "one"), answer("msg_1", "one"), question("2")],
    });
    await keepResponse(store(), { request, origin, record: recordOf(origin.id), endedAtMs: 2_000 });
    expect(await store().inputItems("ws_a", origin.id)).toEqual([
      answer("msg_1", "one"),
      question("2"),
    ]);
    expect(await store().find("ws_a", origin.id)).toMatchObject({
      previousResponseId,
      status: "completed",
      completedAtMs: 2_000,
      background: false,
    });
  });

  const refused: [string, Record<string, unknown>, string][] = [
    ["a background response with store false", { background: true, store: false }, "background"],
    ["a background that is not a boolean", { background: "yes" }, "background"],
    ["a store that is not a boolean", { store: 1 }, "store"],
    ["an invalid previous response id", { previous_response_id: 7 }, "previous_response_id"],
    ["an input that is a number", { input: 7 }, "input"],
    ["an input item that is a string", { input: [question("1"), "2"] }, "input[1]"],
  ];
  test.each(refused)("are refused for %s", async (_, fields, param) => {
    const error = await read({ input: "Hello", ...fields }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ code: "bad_request", param });
  });

  test("are refused for the result of a call that the conversation does not have", async () => {
    const call = { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" };
    const result = (id: string) => ({ type: "function_call_output", call_id: id, output: "" });
    const shell = { type: "local_shell_call", call_id: "call_0" };
    await store().insert(newResponse(previousResponseId, { record: { output: [call, shell] } }));
    const answered = (...input: object[]) =>
      read({ input, previous_response_id: previousResponseId });
    for (const id of ["call_1", "call_0"])
      expect(await answered(result(id))).toMatchObject({ expanded: true });
    for (const type of ["compaction", "compaction_summary"])
      expect(await answered({ type }, result("call_2"))).toMatchObject({ expanded: true });
    const error = await answered(result("call_1"), result("call_2")).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: "bad_request", param: "input" });
    expect(error).toHaveProperty(
      "message",
      "No tool call found for function call output with call_id call_2.",
    );
  });

  test("with store false read stored responses and write nothing", async () => {
    await store().insert(newResponse(previousResponseId));
    const request = await read({
      input: "Hello",
      store: false,
      previous_response_id: previousResponseId,
    });
    expect(request).toMatchObject({ store: false, expanded: true });
    await keepResponse(store(), { request, origin, record: recordOf(origin.id), endedAtMs: 2_000 });
    expect(await count()).toBe(1);
  });

  test("are stored with a queued response that has no output", async () => {
    const request = await read({ input: "Hello", background: true });
    await store().insert(
      queuedResponse({
        request,
        origin,
        record: recordOf(origin.id, { output: [] }),
        requestText: "text",
        presetId: "preset_a",
      }),
    );
    expect(await store().find("ws_a", origin.id)).toMatchObject({
      status: "queued",
      background: true,
      completedAtMs: null,
    });
    expect(await stores.current().jobs.take(origin.id)).toEqual({
      keyId: "key_a",
      createdAtMs: 1_000,
      requestText: "text",
      presetId: "preset_a",
      run: 1,
      mayHaveActed: false,
    });
  });

  test.each(["completed", "incomplete", "failed"])(
    "of a stream are stored before the client reads that the response is %s",
    async (status) => {
      const request = await read({ input: "Hello", stream: true });
      const frames = [
        frame("response.created", {}) + frame("response.in_progress", {}),
        ": ping\n",
        frame("response.output_text.delta", { delta: "response.completed" }),
        frame("response.output_item.done", {}) +
          frame(`response.${status}`, { response: recordOf(origin.id, { status }) }),
        frame("response.service.metadata", {}),
      ];
      const kept = keptStream(sourceOf(...frames), (record) =>
        keepResponse(store(), { request, origin, record, endedAtMs: 2_000 }),
      );
      for (const expected of frames.slice(0, 3)) expect(await kept.next()).toBe(expected);
      expect(await count()).toBe(0);
      expect(await kept.next()).toBe(frames[3] ?? "");
      expect(await store().find("ws_a", origin.id)).toMatchObject({ status });
      expect(await readAll(kept)).toBe(frames[4] ?? "");
      expect(await count()).toBe(1);
    },
  );
});
