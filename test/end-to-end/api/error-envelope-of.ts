import { expect } from "bun:test";
import { at } from "./at.ts";

/**
 * What an error answer says, checked against the one envelope that the contract and OpenAI's
 * clients read.
 */
export interface ErrorAnswer {
  status: number;
  code: unknown;
  message: string;
  type: unknown;
  param: unknown;
  metadata: unknown;
  headers: Headers;
}

const traceId = /^[0-9a-f]{32}$/;

/**
 * Reads an error answer; the test fails where its envelope or its standing headers are not the
 * contract's.
 */
export async function errorOf(response: Response): Promise<ErrorAnswer> {
  const body: unknown = await response.json();
  const error = at(body, "error");
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(Object.keys(Object(body))).toEqual(["error"]);
  expect(Object.keys(Object(error)).sort()).toEqual([
    "code",
    "message",
    "metadata",
    "param",
    "type",
  ]);
  expect(at(error, "metadata.type")).toBe(at(error, "type"));
  expect(["client", "gateway", "upstream"]).toContain(String(at(error, "metadata.fault")));
  expect(String(at(error, "message"))).not.toBe("");
  expect(response.headers.get("x-service-trace-id")).toMatch(traceId);
  expect(response.headers.get("x-request-id")).toBe(response.headers.get("x-service-trace-id"));
  expect(response.headers.get("x-ratelimit-window")).toBe("60");
  return {
    status: response.status,
    code: at(error, "code"),
    message: String(at(error, "message")),
    type: at(error, "type"),
    param: at(error, "param"),
    metadata: at(error, "metadata"),
    headers: response.headers,
  };
}
