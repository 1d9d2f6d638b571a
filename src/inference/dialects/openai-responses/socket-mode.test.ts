import { describe, expect, test } from "bun:test";
import { socketMode } from "./socket-mode.ts";

const items = ["one", "two", "three"].map((content) => ({ role: "user", content }));
const text = JSON.stringify({ model: "m", store: false, input: items, stream: true });
const frameOf = (continued?: Parameters<typeof socketMode.requestFrame>[1]): unknown =>
  JSON.parse(socketMode.requestFrame(text, continued));

describe("frames of requests", () => {
  test("have the body's members without those of HTTP", () => {
    const frame = { type: "response.create", model: "m", store: false, input: items };
    expect(frameOf()).toEqual(frame);
  });

  test("contain the new items alone where the response is continued", () => {
    expect(frameOf({ responseId: "resp_1", itemCount: 3, newCount: 1 })).toMatchObject({
      input: [items[2]],
      previous_response_id: "resp_1",
    });
    expect(frameOf({ responseId: "resp_1", itemCount: 3, newCount: 0 })).toMatchObject({
      input: [],
    });
  });

  test("contain everything where items were left out for the provider", () => {
    const frame = frameOf({ responseId: "resp_1", itemCount: 4, newCount: 1 });
    expect(frame).toMatchObject({ input: items });
    expect(frame).not.toHaveProperty("previous_response_id");
  });
});

describe("frames of answers", () => {
  test.each(["", "[", "null", "[]", "{}", '{"type":1}', '{"type":"a\\nb"}'])(
    "%p is none",
    (frame) => {
      expect(socketMode.readFrame(frame).kind).toBe("malformed");
    },
  );

  test("a piece of text passes as it is", () => {
    const frame = '{"type":"response.output_text.delta","delta":"Hi"}';
    const sse = `event: response.output_text.delta\ndata: ${frame}\n\n`;
    expect(socketMode.readFrame(frame)).toEqual({ kind: "event", sse });
  });

  test("a text with line breaks becomes one line", () => {
    expect(socketMode.readFrame('{"type":\n"response.created"}')).toEqual({
      kind: "event",
      sse: 'event: response.created\ndata: {"type":"response.created"}\n\n',
    });
  });

  test.each([
    ["response.completed", "resp_1"],
    ["response.incomplete", "resp_1"],
    ["response.failed", undefined],
  ])("%s ends the response", (type, responseId) => {
    const frame = JSON.stringify({ type, response: { id: "resp_1" } });
    expect(socketMode.readFrame(frame)).toMatchObject({ kind: "end" });
    expect(socketMode.readFrame(frame).responseId).toBe(responseId);
  });

  test("an error is one", () => {
    expect(socketMode.readFrame('{"type":"error","status":400}').kind).toBe("error");
  });
});
