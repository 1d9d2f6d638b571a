import { describe, expect, test } from "bun:test";
import { dialectRequestCases } from "../../../test/support/dialect-request-cases.ts";
import { dialectResponseCases } from "../../../test/support/dialect-response-cases.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { CanonicalResponse } from "../canonical/response.ts";
import type { ClientDialect, UpstreamDialect } from "./dialect.ts";
import { amazonConverse } from "./amazon-converse/index.ts";
import { anthropicMessages } from "./anthropic-messages/index.ts";
import { googleGenerate } from "./google-generate/index.ts";
import { openaiChat } from "./openai-chat/index.ts";
import { openaiResponses } from "./openai-responses/index.ts";
import { withoutUndefined } from "./shared/wire-fields.ts";

interface DialectUnderTest {
  /** Converse has no side that faces clients. */
  dialect: UpstreamDialect & Partial<ClientDialect>;
  /** Fields of every request on this wire, and what they mean beside the model. */
  everyRequest: { wire: JsonObject; means?: Partial<CanonicalRequest> };
  /** Fields that clients write into the path, and the door adds to the body. */
  inPath?: JsonObject;
  /** Whether the wire has no place for much of a request or an answer, which then reads otherwise. */
  losesOnTheWire?: true;
  /** What every answer of this wire lacks, as it reads. */
  everyAnswer?: Partial<CanonicalResponse>;
}

/** Dialects under test; a new one gets a row here and a column in every case. */
const dialects: Partial<Record<DialectId, DialectUnderTest>> = {
  "openai-chat": { dialect: openaiChat, everyRequest: { wire: { model: "m" } } },
  "anthropic-messages": {
    dialect: anthropicMessages,
    everyRequest: { wire: { model: "m", max_tokens: 4_096 }, means: { maxOutputTokens: 4_096 } },
    everyAnswer: { createdAtSeconds: 0 },
  },
  "google-generate": {
    dialect: googleGenerate,
    everyRequest: { wire: {} },
    inPath: { model: "m", stream: false },
    losesOnTheWire: true,
  },
  "amazon-converse": {
    dialect: amazonConverse,
    everyRequest: { wire: {} },
    everyAnswer: { id: "", model: "", createdAtSeconds: 0 },
  },
  "openai-responses": {
    dialect: openaiResponses,
    everyRequest: {
      wire: { model: "m", store: false, include: ["reasoning.encrypted_content"] },
      means: { store: false },
    },
    everyAnswer: { serviceTier: "default" },
  },
};
const underTest = Object.entries(dialects) as [DialectId, DialectUnderTest][];

describe("a canonical request in each dialect", () => {
  for (const { what, canonical, wire, reads, losses, refuses } of dialectRequestCases) {
    test.each(underTest)(
      `${what}: %s`,
      (id, { dialect, everyRequest, inPath = {}, losesOnTheWire }) => {
        const request: CanonicalRequest = {
          dialect: id,
          model: "m",
          stream: false,
          ...everyRequest.means,
          ...canonical,
        };
        const encode = () =>
          dialect.encodeRequest(request, {
            upstreamModel: "m",
            stream: false,
            providerId: "acme",
            reasons: true,
          });
        const refused = refuses?.[id];
        if (refused !== undefined) {
          expect(encode).toThrow(
            expect.objectContaining({ code: "unsupported_content", param: refused }),
          );
          return;
        }
        const expected = wire[id];
        expect(expected, `${what} has no row for ${id}`).toBeDefined();
        const encoded = encode();
        expect(encoded.body).toStrictEqual({ ...everyRequest.wire, ...expected });
        expect(encoded.losses.map((loss) => loss.field)).toEqual([...(losses?.[id] ?? [])]);
        if (dialect.decodeRequest === undefined) return;
        const decoded = dialect.decodeRequest({ ...inPath, ...encoded.body });
        if (losesOnTheWire === true) expect(decoded).toMatchSnapshot();
        else expect(decoded).toStrictEqual(withoutUndefined({ ...request, ...reads?.[id] }));
      },
    );
  }
});

describe("a canonical response in each dialect", () => {
  for (const { what, canonical, wire, reads } of dialectResponseCases) {
    test.each(underTest)(`${what}: %s`, (id, { dialect, everyAnswer, losesOnTheWire }) => {
      const expected = wire[id];
      expect(expected, `${what} has no row for ${id}`).toBeDefined();
      if (losesOnTheWire === true) expect(dialect.encodeResponse?.(canonical)).toMatchSnapshot();
      else if (dialect.encodeResponse !== undefined)
        expect(dialect.encodeResponse(canonical)).toStrictEqual(expected ?? {});
      expect(dialect.decodeResponse(expected, {})).toStrictEqual({
        ...canonical,
        ...everyAnswer,
        ...reads?.[id],
      });
    });
  }
});
