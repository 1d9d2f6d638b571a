import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jwtVerify } from "jose";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { systemClock } from "../../../platform/kernel/clock.ts";
import { UpstreamClient } from "../upstream-client.ts";
import { createSigner, postFormThrough } from "./create-signer.ts";
import { readServiceAccountKey, ServiceAccountSigner } from "./service-account-signer.ts";

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const minute = 60_000;

/** A token endpoint on loopback: counts what it is asked and answers what the test wants. */
class TokenEndpoint {
  readonly assertions: string[] = [];
  answer: () => Response | Promise<Response> = () =>
    Response.json({
      access_token: `token-${this.assertions.length}`,
      expires_in: 3_600,
      token_type: "Bearer",
    });
  private readonly server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const form = new URLSearchParams(await request.text());
      expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
      expect(request.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
      this.assertions.push(form.get("assertion") ?? "");
      return this.answer();
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}/token`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }
}

const client = new UpstreamClient({ clock: systemClock });
const post = postFormThrough(client);
let endpoint: TokenEndpoint;
let clock: FakeClock;

beforeEach(() => {
  endpoint = new TokenEndpoint();
  clock = new FakeClock();
});
afterEach(() => endpoint.stop());
afterAll(() => client.close());

const keyText = (): string =>
  JSON.stringify({
    type: "service_account",
    client_email: "svc@p.iam.gserviceaccount.com",
    private_key_id: "kid-1",
    private_key: pair.privateKey.export({ type: "pkcs8", format: "pem" }),
    token_uri: endpoint.url,
  });

const newSigner = (): ServiceAccountSigner =>
  new ServiceAccountSigner({ readKey: () => Promise.resolve(keyText()), clock, post });

describe("access tokens of a service account", () => {
  test("are exchanged for an assertion signed with the key", async () => {
    expect(await newSigner().headersFor()).toEqual({ authorization: "Bearer token-1" });
    const { payload, protectedHeader } = await jwtVerify(
      endpoint.assertions[0] ?? "",
      pair.publicKey,
      {
        currentDate: new Date(clock.nowMs()),
        audience: endpoint.url,
        issuer: "svc@p.iam.gserviceaccount.com",
      },
    );
    expect(protectedHeader).toEqual({ alg: "RS256", typ: "JWT", kid: "kid-1" });
    expect(payload).toMatchObject({
      scope: "https://www.googleapis.com/auth/cloud-platform",
      iat: clock.nowMs() / 1_000,
    });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(3_600);
  });

  test("are fetched once for concurrent requests", async () => {
    const signer = newSigner();
    const all = await Promise.all(Array.from({ length: 5 }, () => signer.headersFor()));
    expect(all.map(({ authorization }) => authorization)).toEqual(
      Array.from({ length: 5 }, () => "Bearer token-1"),
    );
    expect(endpoint.assertions).toHaveLength(1);
  });

  test("are returned synchronously while valid", async () => {
    const signer = newSigner();
    await signer.headersFor();
    clock.advance(54 * minute);
    expect(signer.headersFor()).toEqual({ authorization: "Bearer token-1" });
    expect(endpoint.assertions).toHaveLength(1);
  });

  test("are renewed in the background before they expire", async () => {
    const signer = newSigner();
    await signer.headersFor();
    const renewed = Promise.withResolvers<void>();
    endpoint.answer = () => {
      renewed.resolve();
      return Response.json({ access_token: "second", expires_in: 3_600 });
    };
    clock.advance(56 * minute);
    expect(signer.headersFor()).toEqual({ authorization: "Bearer token-1" });
    expect(signer.headersFor()).toEqual({ authorization: "Bearer token-1" });
    await renewed.promise;
    clock.advance(4 * minute);
    expect(await signer.headersFor()).toEqual({ authorization: "Bearer second" });
    expect(endpoint.assertions).toHaveLength(2);
  });

  test("are used until they expire if a renewal fails, then fetched again", async () => {
    const signer = newSigner();
    await signer.headersFor();
    const { answer } = endpoint;
    endpoint.answer = () => new Response("busy", { status: 503 });
    clock.advance(56 * minute);
    expect(signer.headersFor()).toEqual({ authorization: "Bearer token-1" });
    clock.advance(4 * minute);
    await expect(Promise.resolve(signer.headersFor())).rejects.toThrow(
      expect.objectContaining({ fault: "connect_failed" }),
    );
    endpoint.answer = answer;
    expect(await signer.headersFor()).toEqual({
      authorization: `Bearer token-${endpoint.assertions.length}`,
    });
  });

  test("report the reason of a refusal without secrets", async () => {
    endpoint.answer = () =>
      Response.json(
        { error: "invalid_grant", error_description: "Invalid JWT Signature." },
        { status: 400 },
      );
    await expect(Promise.resolve(newSigner().headersFor())).rejects.toThrow(
      "no access token: the token endpoint answered 400: Invalid JWT Signature.",
    );
  });

  test("fail if the token endpoint is unreachable", async () => {
    const text = keyText();
    await endpoint.stop();
    const signer = new ServiceAccountSigner({ readKey: () => Promise.resolve(text), clock, post });
    await expect(Promise.resolve(signer.headersFor())).rejects.toThrow(
      expect.objectContaining({ fault: "connect_failed", sent: false }),
    );
  });
});

describe("a signing key", () => {
  const broken: [what: string, text: string, message: string][] = [
    ["not JSON", "-----BEGIN", "the service account key is not valid JSON"],
    ["null", "null", 'the key has the type undefined; a key of type "service_account" is needed'],
    [
      "a user's",
      '{"type":"authorized_user"}',
      'the key has the type "authorized_user"; a key of type "service_account" is needed',
    ],
    [
      "incomplete",
      '{"type":"service_account","client_email":"a"}',
      "the service account key lacks client_email or private_key",
    ],
  ];
  test.each(broken)("that is %s is refused with an explanation", async (_what, text, message) => {
    expect(() => readServiceAccountKey(text)).toThrow(message);
    const signer = new ServiceAccountSigner({ readKey: () => Promise.resolve(text), clock, post });
    await expect(Promise.resolve(signer.headersFor())).rejects.toThrow(
      `no access token: ${message}`,
    );
  });

  test("in a file is read on demand, and again after it was corrected", async () => {
    const file = join(tmpdir(), `service-account-${process.pid}-${Bun.randomUUIDv7()}.json`);
    const signer = createSigner({ type: "google-service-account", key: { file } }, { clock, post });
    const request = {
      method: "POST",
      url: "https://aiplatform.googleapis.com/v1",
      headers: {},
      body: "{}",
    };
    await expect(Promise.resolve(signer.headersFor(request))).rejects.toThrow(
      expect.objectContaining({ fault: "connect_failed" }),
    );
    writeFileSync(file, keyText());
    try {
      expect(await signer.headersFor(request)).toEqual({ authorization: "Bearer token-1" });
    } finally {
      unlinkSync(file);
    }
  });

  test("of AWS signs with the time of the clock", async () => {
    const signer = createSigner(
      {
        type: "aws-sigv4",
        accessKeyId: "AK",
        secretAccessKey: "s",
        region: "eu-west-1",
        service: "bedrock",
      },
      { clock, post },
    );
    const { authorization } = await signer.headersFor({
      method: "POST",
      url: "https://bedrock.example/x",
      headers: {},
      body: "",
    });
    expect(authorization).toContain("Credential=AK/20261121/eu-west-1/bedrock/aws4_request");
  });
});
