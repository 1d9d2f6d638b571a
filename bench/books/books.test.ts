import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { direct } from "../peers/direct.ts";
import { collectedIds, SpendCollector } from "../peers/spend-collector.ts";
import { idsOf, lockSqlite } from "../peers/sqlite-books.ts";
import { answerId } from "./answers.ts";
import { Clients } from "./clients.ts";
import { compareBooks } from "./compare-books.ts";
import { type NumberedUpstream, startNumberedUpstream } from "./numbered-upstream.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-books-"));
let upstream: NumberedUpstream;
beforeAll(() => void (upstream = startNumberedUpstream()));
afterAll(() => {
  upstream.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe("the id of an answer", () => {
  const event = (id: string): string => `data: ${JSON.stringify({ id, choices: [] })}\n\n`;

  test("is read from whole answers and from complete streams", () => {
    expect(answerId('{"id":"chatcmpl-1","usage":{"total_tokens":3}}')).toBe("chatcmpl-1");
    expect(answerId(`${event("chatcmpl-2")}data: [DONE]\n\n`)).toBe("chatcmpl-2");
    expect(answerId(`${event("chatcmpl-2")}data: [DONE]\n\n`.replaceAll("\n", "\r\n"))).toBe(
      "chatcmpl-2",
    );
  });

  test.each([
    ["a stream without its end", event("chatcmpl-3")],
    ["a stream with an error", `${event("chatcmpl-3")}data: {"error":{}}\n\ndata: [DONE]\n\n`],
    ["a stream without events", "data: [DONE]\n\n"],
    ["an answer without usage", '{"id":"chatcmpl-3"}'],
    ["a truncated answer", '{"id":"chatcmpl-3","usage":{'],
    ["an error", '{"error":{"message":"no"}}'],
    ["nothing", ""],
  ])("is not read from %s", (_, text) => expect(answerId(text)).toBeUndefined());
});

describe("comparing books with answers", () => {
  test("finds no difference when they agree", () => {
    expect(compareBooks(["a", "b"], ["b", "a"])).toEqual({
      rows: 2,
      lost: 0,
      double: 0,
      unseen: 0,
    });
  });

  test("counts lost, duplicate and unseen answers", () => {
    expect(compareBooks(["a", "b", "c"], ["a", "a", "a", "x", "c", "c"])).toEqual({
      rows: 6,
      lost: 1,
      double: 3,
      unseen: 1,
    });
  });
});

describe("load clients", () => {
  test("count each answer of the upstream once, whole and streamed", async () => {
    const before = upstream.requests();
    const clients = new Clients(direct, upstream.port);
    await clients.untilAnswered(60);
    await clients.untilNormal();
    await clients.end();
    expect(clients).toMatchObject({ failed: 0, broken: 0, refused: 0 });
    expect(new Set(clients.answers).size).toBe(clients.answers.length);
    expect(clients.answers.length).toBe(upstream.requests() - before);
  });

  test("count failed answers and continue once the gateway is back", async () => {
    const refusing = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("broken", { status: 502 }),
    });
    const clients = new Clients(direct, refusing.port ?? 0);
    while (clients.failed === 0) await Bun.sleep(1);
    clients.port = upstream.port;
    await clients.untilAnswered(20);
    await clients.end();
    await refusing.stop(true);
    expect(clients.failed).toBeGreaterThan(0);
    expect(clients.answers.length).toBeGreaterThanOrEqual(20);
  });
});

describe("a collector of LiteLLM's records", () => {
  test("leaves out failed requests", () => {
    const line = JSON.stringify([
      { id: "a", status: "success" },
      { id: "b", status: "failure" },
    ]);
    expect(collectedIds(`${line}\n\n[{"id":"c","status":"success"}]\n`)).toEqual(["a", "c"]);
  });

  test("stores what it receives, and nothing while it refuses", async () => {
    const collector = new SpendCollector();
    expect(await collector.readIds(directory)).toEqual([]);
    const url = collector.listen(directory);
    const send = async (id: string): Promise<number> => {
      const body = JSON.stringify([{ id, status: "success" }]);
      return (await fetch(url, { method: "POST", body })).status;
    };
    expect(await send("a")).toBe(200);
    const accept = collector.refuse();
    expect(await send("b")).toBe(503);
    accept();
    expect(await send("c")).toBe(200);
    expect(await collector.readIds(directory)).toEqual(["a", "c"]);
  });
});

test("books in SQLite are read after a writer was locked out", () => {
  const path = join(directory, "books.db");
  using database = new Database(path);
  database.run("pragma journal_mode = wal");
  database.run("create table usage (provider_id text)");
  database.run("insert into usage values ('a'), ('b')");
  const unlock = lockSqlite(path);
  expect(() => database.run("insert into usage values ('c')")).toThrow("locked");
  unlock();
  database.run("insert into usage values ('d')");
  expect(idsOf(path, "select provider_id as id from usage order by id")).toEqual(["a", "b", "d"]);
});
