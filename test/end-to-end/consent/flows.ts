import { createHash } from "node:crypto";
import { textAt } from "../api/at.ts";
import type { Browser } from "../api/people-browser.ts";
import { formWith } from "./page-form.ts";

/** What a person changes in a form of consent before they send it. */
export type Decided = Readonly<Record<string, string | readonly string[] | null>>;

/** A verifier as apps make one, and its challenge. */
export const verifier = "verifier-of-an-app-that-proves-who-asked-0123456789";
export const challenge = createHash("sha256").update(verifier).digest("base64url");

/** Where OAuth clients of these tests go back to. */
export const callback = "https://client.example/cb";

export const authorizePath = "/api/v1/mcp/oauth/authorize";
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** Opens a page of consent and sends its form; gives the answer. */
export async function decideAt(
  person: Browser,
  path: string,
  decided: Decided = {},
): Promise<Response> {
  const shown = await person.ask("GET", path);
  const page = await shown.text();
  if (shown.status !== 200)
    throw new Error(
      `${path} answered ${shown.status} ${shown.headers.get("location")}: ${page.slice(0, 300)}`,
    );
  return person.ask(
    "POST",
    path.split("?")[0] ?? path,
    formWith(page, { decision: "approve", ...decided }),
  );
}

/** Where an answer sends the browser. */
export const placeOf = (answer: Response): URL => new URL(answer.headers.get("location") ?? "");

/** The token and mint routes of one gateway, as apps use them. */
export class AppSide {
  private readonly baseUrl: string;
  private readonly headers: Readonly<Record<string, string>>;

  constructor(baseUrl: string, headers: Readonly<Record<string, string>> = {}) {
    this.baseUrl = baseUrl;
    this.headers = headers;
  }

  form(path: string, fields: Readonly<Record<string, string>>): Promise<Response> {
    return fetch(this.baseUrl + path, {
      method: "POST",
      body: new URLSearchParams(fields),
      headers: this.headers,
    });
  }

  json(path: string, body: unknown): Promise<Response> {
    const headers = { "content-type": "application/json", ...this.headers };
    return fetch(this.baseUrl + path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  bearer(token: string, path: string, method = "GET"): Promise<Response> {
    return fetch(this.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...this.headers },
    });
  }

  /** Asks with a secret, and a body as JSON. */
  as(secret: string, method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${secret}`, ...this.headers };
    return fetch(this.baseUrl + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async clientId(body: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const answer = await this.json("/mcp/oauth/register", {
      redirect_uris: [callback],
      client_name: "A client",
      ...body,
    });
    return textAt(await answer.json(), "client_id");
  }

  poll(deviceCode: string): Promise<Response> {
    return this.form("/oauth/token", { grant_type: deviceGrant, device_code: deviceCode });
  }

  refresh(token: string, more: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.form("/oauth/token", {
      grant_type: "refresh_token",
      refresh_token: token,
      ...more,
    });
  }

  exchange(fields: Readonly<Record<string, string>>): Promise<Response> {
    return this.form("/oauth/token", {
      grant_type: "authorization_code",
      redirect_uri: callback,
      code_verifier: verifier,
      ...fields,
    });
  }

  async startDevice(
    fields: Readonly<Record<string, string>> = {},
  ): Promise<{ deviceCode: string; userCode: string }> {
    const answer: unknown = await (await this.form("/oauth/device/code", fields)).json();
    return { deviceCode: textAt(answer, "device_code"), userCode: textAt(answer, "user_code") };
  }
}

/** The query of an authorization request; null leaves a parameter out. */
export function authorizeQuery(
  clientId: string,
  changes: Readonly<Record<string, string | null>> = {},
): string {
  const parameters = {
    client_id: clientId,
    redirect_uri: callback,
    response_type: "code",
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "the state",
    ...changes,
  };
  return new URLSearchParams(
    Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== null),
  ).toString();
}

/** Approves a device code as a person does who types it. */
export async function decideDevice(
  person: Browser,
  userCode: string,
  decided: Decided = {},
): Promise<Response> {
  const shown = await person.ask("POST", "/device", new URLSearchParams({ user_code: userCode }));
  const page = await shown.text();
  if (shown.status !== 200) return new Response(page, { status: shown.status });
  return person.ask("POST", "/device", formWith(page, { decision: "approve", ...decided }));
}

/** Connects a device, and gives its tokens. */
export async function connectDevice(
  app: AppSide,
  person: Browser,
  {
    fields = {},
    decided = {},
  }: { fields?: Readonly<Record<string, string>>; decided?: Decided } = {},
): Promise<unknown> {
  const { deviceCode, userCode } = await app.startDevice(fields);
  const answer = await decideDevice(person, userCode, decided);
  if (answer.status !== 200) throw new Error(`the device was not approved: ${answer.status}`);
  return (await app.poll(deviceCode)).json();
}

/** Has a person approve an OAuth client; gives the code. */
export async function authorizationCode(
  person: Browser,
  clientId: string,
  {
    asked = {},
    decided = {},
  }: { asked?: Readonly<Record<string, string | null>>; decided?: Decided } = {},
): Promise<string> {
  const answer = await decideAt(
    person,
    `${authorizePath}?${authorizeQuery(clientId, asked)}`,
    decided,
  );
  return placeOf(answer).searchParams.get("code") ?? "";
}

/** Has a person give an app a key at `/auth`; gives the code. */
export async function keyCode(
  person: Browser,
  asked: Readonly<Record<string, string>> = {},
  decided: Decided = {},
): Promise<string> {
  const query = new URLSearchParams({
    callback_url: "https://app.example/callback",
    code_challenge: challenge,
    code_challenge_method: "S256",
    ...asked,
  });
  return (
    placeOf(await decideAt(person, `/auth?${query.toString()}`, decided)).searchParams.get(
      "code",
    ) ?? ""
  );
}
