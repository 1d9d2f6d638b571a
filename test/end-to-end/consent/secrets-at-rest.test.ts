import { readdirSync, readFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { migratedDatabase } from "../../support/postgres.ts";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import {
  AppSide,
  authorizationCode,
  connectDevice,
  decideDevice,
  keyCode,
  verifier,
} from "./flows.ts";

/** Everything that a Postgres database holds, every row of every table as text. */
async function rowsOf(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const tables = await client.query<{ name: string }>(
    "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  );
  const dumps: string[] = [];
  for (const { name } of tables.rows) {
    const rows = await client.query<{ row: string }>(`select t::text as row from ${name} as t`);
    dumps.push(name, ...rows.rows.map(({ row }) => row));
  }
  await client.end();
  return dumps.join("\n");
}

/** The bytes of a database's files, its log included. */
const bytesOf = (directory: string): string =>
  readdirSync(directory)
    .map((file) => readFileSync(join(directory, file)).toString("latin1"))
    .join("\n");

/** A database, and everything that it holds as text. */
type Store = [
  name: string,
  open: () => Promise<{ url: string; read(): Promise<string>; remove(): void }>,
];

const stores: Store[] = [
  [
    "SQLite's files",
    async () => {
      const directory = mkdtempSync(join(tmpdir(), "switchyard-secrets-"));
      const remove = (): void => rmSync(directory, { recursive: true, force: true });
      return {
        url: `sqlite:${join(directory, "test.db")}`,
        read: () => Promise.resolve(bytesOf(directory)),
        remove,
      };
    },
  ],
  [
    "Postgres' rows",
    async () => {
      const url = await migratedDatabase();
      return { url, read: () => rowsOf(url), remove: () => undefined };
    },
  ],
];

describe.each(stores)(
  "secrets of the consent flows are not in plain text in %s or the log",
  (_, open) => {
    let store: Awaited<ReturnType<Store[1]>>;
    let people: PeopledGateway;
    let app: AppSide;
    const secrets: Record<string, string> = {};
    beforeAll(async () => {
      store = await open();
      people = await startPeopled(store.url);
      app = new AppSide(people.gateway().baseUrl);
    }, 240_000);
    afterAll(async () => {
      await people.stop();
      store.remove();
    });

    const keep = (name: string, value: string): string => (secrets[name] = value);
    const keepTokens = (name: string, tokens: unknown): void => {
      keep(`access token of ${name}`, textAt(tokens, "access_token"));
      keep(`refresh token of ${name}`, textAt(tokens, "refresh_token"));
    };

    async function runEveryFlow(): Promise<void> {
      const clientId = await app.clientId();
      const code = keep("OAuth code", await authorizationCode(people.owner, clientId));
      const tokens: unknown = await (await app.exchange({ code, client_id: clientId })).json();
      keepTokens("OAuth", tokens);
      keepTokens(
        "OAuth, refreshed",
        await (await app.refresh(textAt(tokens, "refresh_token"))).json(),
      );
      keep("OAuth code that waits", await authorizationCode(people.owner, clientId));
      const waiting = await app.startDevice();
      keep("device code that waits", waiting.deviceCode);
      keep("user code that waits", waiting.userCode);
      keep("user code that waits, without its dash", waiting.userCode.replace("-", ""));
      const { deviceCode, userCode } = await app.startDevice({ scope: "inference offline_access" });
      keep("device code", deviceCode);
      keep("user code", userCode);
      await decideDevice(people.owner, userCode);
      keepTokens("the device", await (await app.poll(deviceCode)).json());
      keepTokens(
        "a second device",
        await connectDevice(app, people.owner, { fields: { scope: "inference offline_access" } }),
      );
      const forKey = keep("code of /auth", await keyCode(people.owner));
      keep(
        "key",
        textAt(
          await (await app.json("/auth/keys", { code: forKey, code_verifier: verifier })).json(),
          "key",
        ),
      );
      const own = await people.owner.json("POST", "/keys", { name: "k", allowed_endpoints: null });
      const key = keep("key of a person", textAt(own, "key"));
      const minted = await app.as(key, "POST", "/auth/keys/code", {
        callback_url: "https://app.example/",
        code_challenge: verifier,
        code_challenge_method: "plain",
      });
      const mintCode = keep("code of a key", textAt(await minted.json(), "data.id"));
      keep(
        "minted key",
        textAt(
          await (await app.json("/auth/keys", { code: mintCode, code_verifier: verifier })).json(),
          "key",
        ),
      );
      await refuseEverything(clientId);
    }

    /** Refusals are logged more readily than what works. */
    async function refuseEverything(clientId: string): Promise<void> {
      for (const value of Object.values(secrets)) {
        await app.exchange({ code: value, client_id: clientId });
        await app.json("/auth/keys", { code: value, code_verifier: verifier });
        await app.poll(value);
        await app.refresh(value);
        await people.owner.ask("POST", "/device", new URLSearchParams({ user_code: value }));
        const inAddress = encodeURIComponent(value);
        await people.stranger().ask("GET", `/device?user_code=${inAddress}`);
        await people
          .stranger()
          .ask("GET", `/sign-in?return_to=${encodeURIComponent(`/device?user_code=${inAddress}`)}`);
        await people.stranger().ask("GET", `/nowhere?code=${inAddress}`);
      }
      for (const value of Object.values(secrets)) await app.form("/oauth/revoke", { token: value });
    }

    test("after every flow and every refusal", async () => {
      await runEveryFlow();
      const held = await store.read();
      const log = people.gateway().logLines.join("\n");
      const found = Object.entries(secrets).flatMap(([name, value]) => [
        ...(held.includes(value) ? [`${name} is in the database`] : []),
        ...(log.includes(value) ? [`${name} is in the log`] : []),
      ]);
      expect(found).toEqual([]);
      expect(Object.keys(secrets).length).toBe(20);
      // The scan finds what is there: the callback of a code is kept in clear.
      expect([held.includes("https://app.example/callback"), log.length > 0]).toEqual([true, true]);
    }, 240_000);
  },
);
