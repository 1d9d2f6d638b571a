import { describe, expect, test } from "bun:test";
import type { BatchLine } from "./batch.ts";
import { InputReader } from "./input-reader.ts";

async function* pieces(piece: Uint8Array, count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield piece;
}

async function read(input: AsyncIterable<Uint8Array>, endpoint = "/v1/chat/completions") {
  const reader = new InputReader({
    batchId: "batch_1",
    form: "openai",
    endpoint,
    refuseModel: () => undefined,
  });
  const lines: BatchLine[] = [];
  for await (const some of reader.lines(input)) lines.push(...some);
  return { lines, problems: reader.problems };
}

const lineOf = (id: string, body: string) =>
  `{"custom_id":"${id}","method":"POST","url":"/v1/chat/completions","body":${body}}\n`;

describe("hostile inputs", () => {
  test("a line of 200 MB ends the reading at the limit of lines", async () => {
    let sent = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      const piece = Buffer.alloc(65_536, "x");
      for (; sent < 3_200; sent += 1) yield piece;
    }
    const { problems } = await read(endless());
    expect(problems).toMatchObject([{ code: "line_too_long", line: 1 }]);
    expect(sent * 65_536).toBeLessThan(40e6);
  });

  test("a million lines of one byte are refused at the first hundred problems", async () => {
    const { problems, lines } = await read(pieces(Buffer.from("x\n".repeat(10_000)), 100));
    expect(problems.length).toBe(100);
    expect(problems[0]).toMatchObject({ code: "invalid_json_line", line: 1 });
    expect(lines).toEqual([]);
  });

  test("a million empty lines are no requests", async () => {
    const { problems } = await read(pieces(Buffer.from("\n".repeat(10_000)), 100));
    expect(problems).toMatchObject([{ code: "empty_file" }]);
  });

  test("JSON that is nested too deeply is no request", async () => {
    const deep = `{"model":"a/b","messages":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const { problems } = await read(pieces(Buffer.from(lineOf("a", deep)), 1));
    expect(problems).toMatchObject([{ code: "invalid_json_line", line: 1 }]);
  });
});

test("lines are found by their bytes, wherever the pieces are cut", async () => {
  const request = '{"model":"a/b","messages":[]}';
  const text = `${lineOf("ä", request)}\n${lineOf("b", request)}`;
  const bytes = Buffer.from(text);
  for (const size of [1, 7, 64, bytes.length]) {
    async function* cut(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    const { lines, problems } = await read(cut());
    expect(problems).toEqual([]);
    expect(lines.map(({ line, customId }) => [line, customId])).toEqual([
      [1, "ä"],
      [3, "b"],
    ]);
    const [first] = lines;
    const found = bytes.subarray(first?.start, (first?.start ?? 0) + (first?.length ?? 0));
    expect(JSON.parse(found.toString())).toMatchObject({ custom_id: "ä" });
  }
});

test("a response in the background is refused, since its answer is that it has begun", async () => {
  const line = lineOf("a", '{"model":"a/b","input":"x","background":true}');
  const text = line.replace("chat/completions", "responses");
  const { problems } = await read(pieces(Buffer.from(text), 1), "/v1/responses");
  expect(problems).toMatchObject([{ code: "invalid_request", param: "body.background", line: 1 }]);
});
