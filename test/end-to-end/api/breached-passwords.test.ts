import { afterAll, beforeAll, expect, test } from "bun:test";
import { textAt } from "./at.ts";
import { ownersPassword, type PeopledGateway, startPeopled } from "./people-browser.ts";

const known = "a password of a breach";
const padded = "a password that pads the list";
const digestOf = (password: string): string =>
  new Bun.CryptoHasher("sha1").update(password).digest("hex").toUpperCase();

let people: PeopledGateway;
let list: ReturnType<typeof Bun.serve>;
let isDown = false;
const asked: string[] = [];

beforeAll(async () => {
  list = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const path = new URL(request.url).pathname;
      asked.push(path);
      if (isDown) return new Response("", { status: 503 });
      const lines = [
        `${digestOf(known).slice(5)}:42`,
        `${digestOf(padded).slice(5)}:0`,
        `${"0".repeat(35)}:7`,
      ];
      return new Response(lines.join("\r\n"));
    },
  });
  people = await startPeopled(undefined, {
    people: {
      signUp: "open",
      plan: "free",
      oidc: [],
      breachedPasswordsUrl: `http://127.0.0.1:${list.port}`,
    },
  });
});
afterAll(async () => {
  await people.stop();
  await list.stop(true);
});

const signUp = (email: string, password: string): Promise<Response> =>
  people.stranger().ask("POST", "/api/auth/sign-up", { name: "N", email, password });

test("sign-up refuses a breached password and sends only five digits of its hash to the service", async () => {
  asked.length = 0;
  const refused = await signUp("a@example.com", known);
  const answer: unknown = await refused.json();
  expect([
    refused.status,
    textAt(answer, "error.param"),
    textAt(answer, "error.metadata.reason"),
  ]).toEqual([400, "password", "breached_password"]);
  expect(asked).toEqual([`/range/${digestOf(known).slice(0, 5)}`]);
  expect((await signUp("a@example.com", padded)).status).toBe(200);
});

test("changing a password refuses a breached one too", async () => {
  const change = (password: string): Promise<Response> =>
    people.owner.ask("POST", "/api/auth/change-password", {
      current_password: ownersPassword,
      new_password: password,
    });
  expect((await change(known)).status).toBe(400);
  expect((await change("another long password")).status).toBe(200);
});

test("an outage of the breach service blocks no sign-up and is logged", async () => {
  isDown = true;
  expect((await signUp("b@example.com", known)).status).toBe(200);
  isDown = false;
  expect(people.gateway().logLines.join("\n")).toContain("answered 503");
});
