import { expect, test } from "bun:test";
import fc from "fast-check";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonValue } from "../../canonical/json.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { decodeResponse } from "./decode-response.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";
import { readError } from "./errors.ts";

const chunks = readCassettes("google-generate")
  .flatMap(({ bytes }) => new SseDecoder().push(bytes))
  .filter(({ data }) => data.startsWith('{"'))
  .flatMap(({ data }) => parsed(data));

function parsed(data: string): JsonValue[] {
  try {
    return [JSON.parse(data) as JsonValue];
  } catch {
    return [];
  }
}

/** A chunk of a cassette in which one value, picked by walking down along `path`, is another. */
function garbled(value: JsonValue, path: readonly number[], by: JsonValue): JsonValue {
  const [step = 0, ...rest] = path;
  if (path.length === 0 || typeof value !== "object" || value === null) return by;
  if (Array.isArray(value))
    return value.map((entry: JsonValue, index) =>
      index === step % value.length ? garbled(entry, rest, by) : entry,
    );
  const keys = Object.keys(value);
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [
      key,
      key === keys[step % keys.length] ? garbled(entry as JsonValue, rest, by) : entry,
    ]),
  );
}

const garbledChunk = fc
  .record({
    chunk: fc.constantFrom(...chunks),
    path: fc.array(fc.nat(20), { maxLength: 8 }),
    by: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
  })
  .map(({ chunk, path, by }) => garbled(chunk, path, by));

test("a malformed stream ends once and returns only valid parts", () => {
  fc.assert(
    fc.property(fc.array(garbledChunk, { maxLength: 5 }), (stream) => {
      const decoder = new GenerateStreamDecoder({ providerId: "acme" });
      const parts = [
        ...stream.flatMap((chunk) => decoder.decode({ data: JSON.stringify(chunk) })),
        ...decoder.end(),
      ];
      expect(parts.findIndex(({ type }) => type === "response-end" || type === "error")).toBe(
        parts.length - 1,
      );
    }),
    { numRuns: 3_000 },
  );
});

test("a malformed response is decoded or refused as an upstream error", () => {
  fc.assert(
    fc.property(garbledChunk, (body) => {
      try {
        decodeResponse(body);
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError);
        expect(error).toMatchObject({ code: "upstream_error" });
      }
    }),
    { numRuns: 3_000 },
  );
});

test("an error response of any content has a message", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (body) => {
      const wrapped = [
        body,
        { error: body },
        [{ error: { details: body, message: body, code: body } }],
      ];
      for (const one of wrapped) expect(readError(500, one).message.length).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});
