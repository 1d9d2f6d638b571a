import { testLlmKey, type TestGateway } from "../../../support/gateway.ts";

/** The head of a chat request as bytes on the wire, with the headers that frame its body. */
export const rawChatHead = (framing: string): string =>
  [
    "POST /api/v1/chat/completions HTTP/1.1",
    "host: gateway",
    `authorization: Bearer ${testLlmKey}`,
    "content-type: application/json",
    framing,
    "",
    "",
  ].join("\r\n");

/** The port that a gateway listens on. */
export const portOf = ({ origin }: TestGateway): number => Number(new URL(origin).port);
