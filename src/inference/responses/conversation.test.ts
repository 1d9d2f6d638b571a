import { describe, expect, test } from "bun:test";
import {
  answer,
  engines,
  newResponse,
  question,
  queuedJob,
  responseId,
  storesOn,
} from "../../../test/support/stored-responses.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  conversationBytesMax,
  conversationDepthMax,
  expandConversation,
  resolveReferences,
} from "./conversation.ts";
import { listedItem } from "./conversation.ts";

describe.each(engines)("conversations on %s", (engine) => {
  const stores = storesOn(engine);
  const store = () => stores.current().responses;
  const expand = (previousId: string, workspaceId = "ws_a") =>
    expandConversation(store(), { previousId, workspaceId });
  const resolve = (items: readonly Record<string, unknown>[], workspaceId = "ws_a") =>
    resolveReferences(store(), { items, workspaceId });

  /** What a promise is refused with. */
  async function refusal(promise: Promise<unknown>) {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof GatewayError)) throw new Error(`was not refused: ${String(error)}`);
    const { status, code, param, message } = error;
    return { status, code, param, message };
  }

  /** A turn for each number, each continuing from the one before it. */
  async function keepTurns(...numbers: number[]): Promise<void> {
    for (const [index, number] of numbers.entries()) {
      await store().insert(
        newResponse(responseId(number), {
          previousResponseId: index === 0 ? null : responseId(numbers[index - 1] ?? 0),
          inputItems: turn(number).slice(0, 1),
          record: { output: turn(number).slice(1) },
        }),
      );
    }
  }

  const turn = (number: number) => [
    question(`question ${number}`),
    { type: "reasoning", id: `rs_${number}`, summary: [] },
    answer(`msg_${number}`, `answer ${number}`),
  ];

  test("start with all earlier inputs and outputs, oldest first", async () => {
    await keepTurns(1, 2, 3);
    expect(await expand(responseId(3))).toEqual([...turn(1), ...turn(2), ...turn(3)]);
    expect(await expand(responseId(2))).toEqual([...turn(1), ...turn(2)]);
  });

  test("can branch from the same response", async () => {
    await keepTurns(1, 2);
    await store().insert(
      newResponse(responseId(4), {
        previousResponseId: responseId(1),
        inputItems: [question("other")],
        record: { output: [] },
      }),
    );
    expect(await expand(responseId(4))).toEqual([...turn(1), question("other")]);
  });

  test("return 404 for a response that the workspace does not have", async () => {
    await keepTurns(1);
    const notFound = {
      status: 404,
      code: "previous_response_not_found",
      param: "previous_response_id",
    };
    for (const unknown of [responseId(9), "resp_1", "", "\0"])
      expect(await refusal(expand(unknown))).toMatchObject(notFound);
    expect(await refusal(expand(responseId(1), "ws_b"))).toMatchObject(notFound);
  });

  test("return 404 if an ancestor belongs to another workspace", async () => {
    await store().insert(newResponse(responseId(1), { workspaceId: "ws_b" }));
    await store().insert(newResponse(responseId(2), { previousResponseId: responseId(1) }));
    expect(await refusal(expand(responseId(2)))).toMatchObject({
      code: "previous_response_not_found",
    });
  });

  test("return 404 for descendants of a deleted response", async () => {
    await keepTurns(1, 2, 3);
    await store().delete("ws_a", responseId(2));
    expect(await refusal(expand(responseId(3)))).toMatchObject({
      status: 404,
      code: "previous_response_not_found",
      param: "previous_response_id",
      message: expect.stringContaining(responseId(2)),
    });
    expect(await expand(responseId(1))).toEqual(turn(1));
  });

  test("refuse to continue from a response in progress", async () => {
    await store().insert(queuedJob(responseId(1)));
    expect(await refusal(expand(responseId(1)))).toMatchObject({
      status: 400,
      code: "bad_request",
      param: "previous_response_id",
      message: expect.stringContaining("queued"),
    });
  });

  test("have a maximum number of responses", async () => {
    const { database } = stores.current().storage;
    const rows = Array.from({ length: conversationDepthMax + 1 }, (_, index) => ({
      id: responseId(index),
      workspace_id: "ws_a",
      key_id: "k",
      created_at_ms: 1,
      completed_at_ms: 1,
      status: "completed",
      model: "m",
      background: 0,
      previous_response_id: index === 0 ? null : responseId(index - 1),
      size_bytes: 4,
      record: "{}",
      input_items: "[]",
      request: null,
    }));
    await database.insertInto("stored_responses").values(rows).execute();
    expect(await expand(responseId(conversationDepthMax - 1))).toEqual([]);
    expect(await refusal(expand(responseId(conversationDepthMax)))).toMatchObject({
      status: 400,
      code: "bad_request",
      param: "previous_response_id",
      message: expect.stringContaining("1000 responses"),
    });
  });

  test("have a maximum size in bytes", async () => {
    await keepTurns(1, 2);
    const { database } = stores.current().storage;
    await database
      .updateTable("stored_responses")
      .set({ size_bytes: conversationBytesMax })
      .where("id", "=", responseId(1))
      .execute();
    expect(await expand(responseId(1))).toEqual(turn(1));
    expect(await refusal(expand(responseId(2)))).toMatchObject({
      code: "bad_request",
      message: expect.stringContaining(`${conversationBytesMax} bytes`),
    });
  });

  test("replace item references by the inputs and outputs that they name", async () => {
    await keepTurns(1, 2);
    const made = listedItem(question("question 1"), { responseId: responseId(1), index: 0 }).id;
    const sent = [
      { type: "item_reference", id: "msg_2" },
      question("plain"),
      { id: "rs_1" },
      { type: "item_reference", id: made },
      { type: "message", role: "user", id: "msg_2", content: "has an id and is no reference" },
    ];
    expect(await resolve(sent)).toEqual([
      turn(2)[2] ?? {},
      question("plain"),
      turn(1)[1] ?? {},
      question("question 1"),
      sent[4] ?? {},
    ]);
  });

  test("keep items without references unchanged", async () => {
    const sent = [question("plain"), { type: "function_call_output", call_id: "c", output: "1" }];
    expect(await resolve(sent)).toBe(sent);
  });

  test("return 404 with the path of an unknown item reference", async () => {
    await keepTurns(1);
    const reference = (id: string) => [question("plain"), { type: "item_reference", id }];
    const refused = { status: 404, code: "previous_response_not_found", param: "input[1].id" };
    for (const unknown of ["msg_none", "", "\0", `msg_${"0".repeat(31)}100000009`]) {
      expect(await refusal(resolve(reference(unknown)))).toMatchObject(refused);
    }
    expect(await refusal(resolve(reference("msg_1"), "ws_b"))).toMatchObject(refused);
  });

  test("limit the total size of referenced items", async () => {
    await store().insert(
      newResponse(responseId(1), {
        record: { output: [answer("msg_long", "x".repeat(1_000_000))] },
      }),
    );
    const many = Array.from({ length: 40 }, () => ({ type: "item_reference", id: "msg_long" }));
    expect(await refusal(resolve(many))).toMatchObject({
      status: 400,
      code: "bad_request",
      message: expect.stringContaining("bytes"),
    });
    const ids = Array.from({ length: 10_001 }, (_, index) => ({
      type: "item_reference",
      id: `msg_${index}`,
    }));
    expect(await refusal(resolve(ids))).toMatchObject({
      status: 400,
      code: "bad_request",
      param: "input",
    });
  });
});
