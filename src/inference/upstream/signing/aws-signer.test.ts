import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { AwsSigner } from "./aws-signer.ts";
import type { SignableRequest } from "./request-signer.ts";

const published = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
  service: "service",
};
const at = Date.UTC(2015, 7, 30, 12, 36);
const sessionToken =
  "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUu" +
  "wthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQc" +
  "HNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/o" +
  "LxBA==";

/**
 * Of the suite that AWS publishes, "Signature Version 4 test suite": what is signed, and the
 * signature.
 */
describe("AWS's published test vectors", () => {
  const get: SignableRequest = {
    method: "GET",
    url: "https://example.amazonaws.com/",
    headers: {},
    body: "",
  };
  const rows: [name: string, request: SignableRequest, signedHeaders: string, signature: string][] =
    [
      [
        "get-vanilla",
        get,
        "host;x-amz-date",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
      ],
      [
        "get-vanilla-query-order-key-case",
        { ...get, url: `${get.url}?Param2=value2&Param1=value1` },
        "host;x-amz-date",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
      ],
      [
        "get-unreserved",
        {
          ...get,
          url: `${get.url}-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz`,
        },
        "host;x-amz-date",
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
      ],
      [
        "post-vanilla",
        { ...get, method: "POST" },
        "host;x-amz-date",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
      ],
      [
        "post-x-www-form-urlencoded",
        {
          ...get,
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: "Param1=value1",
        },
        "content-type;host;x-amz-date",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
      ],
    ];
  test.each(rows)("%s", async (_name, request, signedHeaders, signature) => {
    const headers = await new AwsSigner(published, new FakeClock(at)).headersFor(request);
    expect(headers).toEqual({
      "x-amz-date": "20150830T123600Z",
      authorization:
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
        `SignedHeaders=${signedHeaders}, Signature=${signature}`,
    });
  });

  test("post-sts-header-before", async () => {
    const signer = new AwsSigner({ ...published, sessionToken }, new FakeClock(at));
    const headers = await signer.headersFor({ ...get, method: "POST" });
    expect(headers["x-amz-security-token"]).toBe(sessionToken);
    expect(headers.authorization).toEndWith(
      "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    );
  });
});

test("escapes an escaped path again, as all services except S3 require", async () => {
  const sign = (url: string) =>
    new AwsSigner({ ...published, service: "bedrock" }, new FakeClock(at)).headersFor({
      method: "POST",
      url,
      headers: { "content-type": "application/json" },
      body: "{}",
    });
  // Computed with aws4fetch 1.0.20, another implementation.
  expect(
    (
      await sign(
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-v2%3A1/invoke",
      )
    ).authorization,
  ).toEndWith("Signature=192de42d5fab323eff472b6d44024e4fec0cf5b81f49aaed8618fce4ff2ab58e");
});

test("gives another signature for another second or another body", async () => {
  const clock = new FakeClock(at);
  const signer = new AwsSigner(published, clock);
  const sign = async (body: string) =>
    (
      await signer.headersFor({
        method: "POST",
        url: "https://example.amazonaws.com/",
        headers: {},
        body,
      })
    ).authorization;
  const first = await sign("{}");
  expect(await sign("{}")).toBe(first);
  expect(await sign('{"a":"Łódź"}')).not.toBe(first);
  clock.advance(1_000);
  expect(await sign("{}")).not.toBe(first);
});
