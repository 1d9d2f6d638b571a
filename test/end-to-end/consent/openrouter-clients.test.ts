import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OpenRouter } from "@openrouter/sdk";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startAtOrigin } from "../api/people-browser.ts";
import { engines } from "../api/two-workspaces.ts";
import { decideAt, placeOf } from "./flows.ts";

const callback = "https://app.example/callback";

/** Makes a challenge as the public documentation of OpenRouter's flow does. */
async function createSHA256CodeChallenge(input: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(input));
  return Buffer.from(hash).toString("base64url");
}

describe.each(engines)("apps of OpenRouter's flow with another host, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startAtOrigin(await freshUrl());
  }, 240_000);
  afterAll(() => people.stop());

  const approve = async (url: string): Promise<string> => {
    const { pathname, search } = new URL(url);
    return placeOf(await decideAt(people.owner, pathname + search)).searchParams.get("code") ?? "";
  };
  const works = async (key: string): Promise<boolean> =>
    (
      await fetch(`${people.gateway().origin}/api/v1/key`, {
        headers: { authorization: `Bearer ${key}` },
      })
    ).ok;

  test.each(["S256", "plain"])("the documented requests give a key (%s)", async (method) => {
    const codeVerifier = crypto.randomUUID() + crypto.randomUUID();
    const challenge =
      method === "S256" ? await createSHA256CodeChallenge(codeVerifier) : codeVerifier;
    const code = await approve(
      `${people.gateway().origin}/auth?callback_url=${callback}&code_challenge=${challenge}&code_challenge_method=${method}`,
    );
    const response = await fetch(`${people.gateway().origin}/api/v1/auth/keys`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code, code_verifier: codeVerifier, code_challenge_method: method }),
    });
    const answer: unknown = await response.json();
    expect([response.status, Object.keys(Object(answer)).toSorted()]).toEqual([
      200,
      ["key", "user_id"],
    ]);
    expect(await works(textAt(answer, "key"))).toBe(true);
  });

  test("the SDK's own flow gives a key, on the page and with a key of a person", async () => {
    const serverURL = `${people.gateway().origin}/api/v1`;
    const anonymous = new OpenRouter({ serverURL });
    const { codeChallenge, codeVerifier } = await anonymous.oAuth.createSHA256CodeChallenge();
    const url = await anonymous.oAuth.createAuthorizationUrl({
      callbackUrl: callback,
      codeChallenge,
      codeChallengeMethod: "S256",
    });
    const exchange = (code: string) =>
      anonymous.oAuth.exchangeAuthCodeForAPIKey({
        requestBody: { code, codeVerifier, codeChallengeMethod: "S256" },
      });
    const { key } = await exchange(await approve(url));
    expect(await works(key)).toBe(true);
    const own = await people.owner.json("POST", "/keys", { name: "own", allowed_endpoints: null });
    const apiKey = textAt(own, "key");
    const asked = await new OpenRouter({ serverURL, apiKey }).oAuth.createAuthCode({
      requestBody: { callbackUrl: callback, codeChallenge, codeChallengeMethod: "S256", limit: 1 },
    });
    const child = await exchange(asked.data.id);
    expect([await works(child.key), child.userId?.startsWith("usr_")]).toEqual([true, true]);
  });
});
