import { testManagementKey } from "../../support/gateway.ts";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import type { AppTools } from "../../../src/app/app.ts";
import { textAt } from "../api/at.ts";
import { startPeopled, type Browser, type PeopledGateway } from "../api/people-browser.ts";

/** A gateway with an operator, and people who are none. */
export interface OperatorScene extends PeopledGateway {
  /** The organisation that people are invited to. */
  organizationId: string;
  /** Signs a person up by invitation; returns their browser, user id, email and password. */
  person(name: string): Promise<{ browser: Browser; id: string; email: string; password: string }>;
  /** Asks with the management key of the first workspace. */
  automation(method: string, path: string, body?: unknown): Promise<Response>;
  /** Asks with any key. */
  withKey(secret: string, method: string, path: string, body?: unknown): Promise<Response>;
}

/** Starts one on a storage engine. */
export async function startOperatorScene(
  url: string | undefined,
  changes: Partial<AppSettings> = {},
  tools: Partial<AppTools> = {},
): Promise<OperatorScene> {
  const peopled = await startPeopled(url, changes, tools);
  const organizationId = textAt(
    await peopled.owner.json("POST", "/organizations", { name: "Acme" }),
    "id",
  );
  const withKey: OperatorScene["withKey"] = (secret, method, path, body) =>
    fetch(peopled.gateway().baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    ...peopled,
    organizationId,
    async person(name) {
      const email = `${name}@example.com`;
      const browser = await peopled.invited(organizationId, { email, role: "member" });
      return {
        browser,
        email,
        password: `password of ${email}`,
        id: textAt(await browser.json("GET", "/session"), "user.id"),
      };
    },
    automation: (method, path, body) => withKey(testManagementKey, method, path, body),
    withKey,
  };
}
