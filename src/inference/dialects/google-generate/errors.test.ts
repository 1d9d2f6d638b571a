import { describe, expect, test } from "bun:test";
import { type ErrorCode, GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asObject, objectsIn } from "../shared/wire-fields.ts";
import { encodeError } from "./errors.ts";

const bodyOf = (error: GatewayError): JsonObject =>
  asObject(encodeError(error, { traceId: "t" }).error) ?? {};

const detailOf = ({ details }: JsonObject, kind: string): JsonObject | undefined =>
  objectsIn(details).find((detail) => detail["@type"] === `type.googleapis.com/google.rpc.${kind}`);

describe("an error in Google's form", () => {
  test.each<[ErrorCode, number, string]>([
    ["bad_request", 400, "INVALID_ARGUMENT"],
    ["invalid_api_key", 401, "UNAUTHENTICATED"],
    ["insufficient_balance", 402, "RESOURCE_EXHAUSTED"],
    ["model_unavailable", 404, "NOT_FOUND"],
    ["content_too_large", 413, "INVALID_ARGUMENT"],
    ["rate_limit_exceeded", 429, "RESOURCE_EXHAUSTED"],
    ["internal_server_error", 500, "INTERNAL"],
    ["upstream_error", 502, "UNAVAILABLE"],
    ["upstream_timeout", 504, "DEADLINE_EXCEEDED"],
  ])("%s has the code %d and the status %s", (code, status, word) => {
    const body = bodyOf(new GatewayError(code, "Words."));
    expect(body).toMatchObject({ code: status, message: "Words.", status: word });
    expect(detailOf(body, "ErrorInfo")).toMatchObject({ metadata: { code } });
  });

  test("says how long to wait", () => {
    const error = new GatewayError("rate_limit_exceeded", "Later.", { retryAfterSeconds: 7 });
    expect(detailOf(bodyOf(error), "RetryInfo")).toMatchObject({ retryDelay: "7s" });
  });

  test("names the field that is wrong", () => {
    const error = new GatewayError("bad_request", "No.", { param: "contents" });
    expect(detailOf(bodyOf(error), "BadRequest")).toMatchObject({
      fieldViolations: [{ field: "contents", description: "No." }],
    });
  });

  test.each<ErrorCode>([
    "insufficient_balance",
    "spend_limit_reached",
    "run_exhausted",
    "plan_required",
  ])("%s ends gemini-cli's retries: no time to wait, and the reason that it knows", (code) => {
    const body = bodyOf(new GatewayError(code, "No money.", { retryAfterSeconds: 3_600 }));
    expect(detailOf(body, "RetryInfo")).toBeUndefined();
    expect(detailOf(body, "ErrorInfo")?.reason).toBe("INSUFFICIENT_G1_CREDITS_BALANCE");
  });
});
