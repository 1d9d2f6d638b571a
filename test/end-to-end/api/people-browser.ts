import type { AppTools } from "../../../src/app/app.ts";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { textAt } from "./at.ts";

/** The public origin of the gateways that tests start. */
export const publicOrigin = "http://127.0.0.1";

export const ownersPassword = "the owner's long password";

/** What a browser keeps and sends: cookies, and where its page comes from. */
export class Browser {
  private readonly gateway: () => TestGateway;
  readonly cookies = new Map<string, string>();
  /** Sent with everything that is no GET; null sends none. */
  origin: string | null = publicOrigin;
  /** Further headers of every request. */
  headers: Record<string, string> = {};

  constructor(gateway: () => TestGateway) {
    this.gateway = gateway;
  }

  /** Asks below the origin of the gateway; a body is sent as JSON, a form as browsers send one. */
  async ask(method: string, path: string, body?: unknown): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(this.gateway().origin + path, {
      method,
      redirect: "manual",
      headers: {
        ...(cookie === "" ? {} : { cookie }),
        ...(method === "GET" || this.origin === null ? {} : { origin: this.origin }),
        ...(body === undefined || body instanceof URLSearchParams
          ? {}
          : { "content-type": "application/json" }),
        ...this.headers,
      },
      ...(body === undefined
        ? {}
        : { body: body instanceof URLSearchParams ? body : JSON.stringify(body) }),
    });
    for (const line of response.headers.getSetCookie()) this.keep(line);
    return response;
  }

  /** Asks the API. */
  api(method: string, path: string, body?: unknown): Promise<Response> {
    return this.ask(method, `/api/v1${path}`, body);
  }

  /** The JSON of an answer that is expected to succeed. */
  async json(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await this.api(method, path, body);
    const answer: unknown = await response.json();
    if (!response.ok)
      throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  }

  signIn(email: string, password: string): Promise<Response> {
    return this.ask("POST", "/api/auth/sign-in/email", { email, password });
  }

  private keep(line: string): void {
    const [pair = "", ...attributes] = line.split("; ");
    const at = pair.indexOf("=");
    const ended = attributes.some((attribute) => attribute.toLowerCase() === "max-age=0");
    if (ended) this.cookies.delete(pair.slice(0, at));
    else this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
  }
}

/** A gateway with people: an owner who has claimed it, and the people they invite. */
export interface PeopledGateway {
  gateway(): TestGateway;
  /** Signed in as `owner@example.com`. */
  owner: Browser;
  /** A browser in which no person has signed in. */
  stranger(): Browser;
  /** Invites a person to an organisation; returns the browser in which they signed up. */
  invited(organizationId: string, person: { email: string; role: string }): Promise<Browser>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one that is public at its own address, as clients need it that check who answers. */
export async function startAtOrigin(
  url: string | undefined,
  changes: Partial<AppSettings> = {},
): Promise<PeopledGateway> {
  let origin = publicOrigin;
  const people = await startPeopled(url, { publicUrl: () => origin, ...changes });
  origin = people.gateway().origin;
  people.owner.origin = origin;
  return people;
}

/** Starts one on a storage engine. */
export async function startPeopled(
  url: string | undefined,
  changes: Partial<AppSettings> = {},
  tools: Partial<AppTools> = {},
): Promise<PeopledGateway> {
  const settings = { ...(url === undefined ? {} : { storageUrl: url }), ...changes };
  let gateway = await startGateway(settings, tools);
  const stranger = (): Browser => {
    const browser = new Browser(() => gateway);
    browser.origin = changes.publicUrl?.() ?? publicOrigin;
    return browser;
  };
  const owner = stranger();
  const claimToken = await gateway.app.issueClaim();
  const person = { name: "Olga Owner", email: "owner@example.com", password: ownersPassword };
  const answer = await owner.ask("POST", "/api/auth/sign-up", {
    ...person,
    claim_token: claimToken,
  });
  if (!answer.ok) throw new Error(`the owner could not claim the gateway: ${await answer.text()}`);
  return {
    gateway: () => gateway,
    owner,
    stranger,
    async invited(organizationId, { email, role }) {
      const invitation = await owner.json("POST", `/organizations/${organizationId}/invitations`, {
        email,
        role,
      });
      const browser = stranger();
      const token = new URL(textAt(invitation, "url")).searchParams.get("token");
      const joined = await browser.ask("POST", "/api/auth/sign-up", {
        name: email,
        email,
        password: `password of ${email}`,
        invitation_token: token,
      });
      if (!joined.ok) throw new Error(`${email} could not join: ${await joined.text()}`);
      return browser;
    },
    async restart() {
      await gateway.stop();
      gateway = await startGateway(settings, tools);
    },
    stop: () => gateway.stop(),
  };
}
