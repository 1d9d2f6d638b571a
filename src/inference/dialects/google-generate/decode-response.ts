import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonValue } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { ReportedError, CanonicalResponse, MeteredUsage } from "../../canonical/response.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asObject } from "../shared/wire-fields.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";

/**
 * Decodes a generateContent answer; see `UpstreamDialect.decodeResponse`. It has the form of one
 * chunk of a stream, so the same code reads both; a list is a stream without `alt=sse`.
 */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const first = asObject(asArray(body)?.[0] ?? body);
  if (first === undefined) throw notAnAnswer();
  const assembler = assembled(body, context);
  if (assembler.error !== undefined) throw brokenOff(assembler.error.error);
  const response = assembler.response();
  if (response.choices.length === 0 && response.usage === undefined) throw notAnAnswer();
  return response;
}

/** Assembles an answer as far as it can be read. */
export function assembled(body: unknown, context: DecodeContext): ResponseAssembler {
  const decoder = new GenerateStreamDecoder(context);
  const assembler = new ResponseAssembler();
  for (const part of [...decoder.readChunks(body as JsonValue), ...decoder.finish()])
    assembler.add(part);
  return assembler;
}

/** Returns the usage of an answer that ended in the model's own failure; undefined for others. */
export function usageOfFailure(body: unknown): MeteredUsage | undefined {
  const decoder = new GenerateStreamDecoder();
  const parts = decoder.readChunks(body as JsonValue);
  return parts.some((part) => part.type === "error" && part.error.generated === true)
    ? decoder.latestUsage
    : undefined;
}

/**
 * Converts a whole answer to events: it has the form of a chunk, and a stream without `alt=sse` is
 * a list of them.
 */
export function eventsOfWhole(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [parsed])
      .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
      .join("");
  } catch {
    return `data: ${text.replace(/[\r\n]+/g, " ").trim()}\n\n`;
  }
}

/** Returns the list of a stream's chunks. */
export const wholeOfEvents = (data: readonly string[]): string =>
  `[${data.filter((chunk) => chunk.startsWith("{")).join(",")}]`;

const notAnAnswer = (): GatewayError =>
  new GatewayError("upstream_error", "The provider's answer is no generateContent answer.");

const brokenOff = ({ message, code }: ReportedError): GatewayError =>
  new GatewayError("upstream_error", message, {
    metadata: {
      upstream_message: message,
      ...(code !== undefined && { upstream_error: { code } }),
    },
  });
