import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { GatewayError } from "../../../src/platform/kernel/errors.ts";
import { adaptIn, pingIn, relayIn, routeIn } from "../../support/in-process.ts";
import { callRows } from "./regressions/calls.ts";
import { elsewhere, notOurs } from "./regressions/elsewhere.ts";
import type { RequestRow, StreamRow } from "./regressions/regression-row.ts";
import { contentRows } from "./regressions/request-contents.ts";
import { requestRows as callRequestRows } from "./regressions/requests.ts";
import { endRows } from "./regressions/thoughts-and-ends.ts";
import type { ClientName } from "./support/client-dialect.ts";
import { fieldsOf, listOf, type Fields } from "./support/json-value.ts";
import { clientOf, upstreams } from "./support/pairs.ts";
import { readStreamed, type Reply } from "./support/reply.ts";

const streamRows = [...callRows, ...endRows];
const requestRows = [...callRequestRows, ...contentRows];

/** The name under which the one tool of a request went out. */
const sentToolName = (text: string): string =>
  String(fieldsOf(fieldsOf(listOf((JSON.parse(text) as Fields).tools)[0]).function).name);

/** What a client makes of a row's events. */
async function relayed(
  row: StreamRow,
  name: ClientName,
): Promise<Omit<Reply, "status" | "headers">> {
  const client = clientOf(name);
  const body = { model: "acme/large", ...client.ask("Hi"), stream: true, ...row.asked?.[name] };
  const adapter = adaptIn(name, { body, route: routeIn(row.upstream) });
  const events = row.sends.map((data) => {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const event =
      typeof data === "string" || data.type === undefined ? "" : `event: ${String(data.type)}\n`;
    const named = text.includes("$LONG")
      ? text.replace("$LONG", sentToolName(adapter.requestText))
      : text;
    return Buffer.from(`${event}data: ${named}\n\n`);
  });
  const { text, refused } = await relayIn(adapter, events);
  expect(refused).toBeUndefined();
  return readStreamed(client, text);
}

describe("stream regressions of other gateways", () => {
  for (const row of streamRows) {
    test.each(row.clients.map((client) => [client]))(
      `${row.number} ${row.upstream} -> %s: ${row.what}`,
      async (name) => {
        const reply = await relayed(row, name);
        expect([reply.breaches, reply.errors, reply.endings]).toEqual([[], [], 1]);
        expect(reply).toMatchObject(row.means ?? {});
        expect(reply.body).toMatchObject(row.sees?.[name] ?? {});
        expect((row.holds?.[name] ?? []).filter((part) => !reply.raw.includes(part))).toEqual([]);
        expect((row.lacks?.[name] ?? []).filter((part) => reply.raw.includes(part))).toEqual([]);
        if (row.number === "C3") expect(new Set(reply.calls.map(({ id }) => id)).size).toBe(2);
      },
    );
  }
});

function sent({ client, upstream, sends, deviations }: RequestRow): Fields {
  const { model, route } = routeIn(upstream);
  const changed = {
    model,
    route: {
      ...route,
      provider: { ...route.provider, deviations: { ...route.provider.deviations, ...deviations } },
    },
  };
  const { messages: _messages, input: _input, ...bound } = clientOf(client).ask("");
  return JSON.parse(
    adaptIn(client, { body: { model: "acme/large", ...bound, ...sends }, route: changed })
      .requestText,
  ) as Fields;
}

describe("request regressions of other gateways", () => {
  test.each(
    requestRows.map(
      (row) => [`${row.number} ${row.client} -> ${row.upstream}: ${row.what}`, row] as const,
    ),
  )("%s", (_, row) => {
    if (row.refused === undefined) {
      const got = sent(row);
      for (const [key, value] of Object.entries(row.gets ?? {}))
        expect([key, got[key]]).toEqual([key, value]);
      return;
    }
    const refusal = expect.objectContaining({ status: 400, param: row.refused });
    expect(() => sent(row)).toThrow(refusal as unknown as GatewayError);
  });
});

test("C62 an id that Anthropic rejects becomes a valid one, in the call and in its result", () => {
  const row = requestRows.find(({ number }) => number === "C62");
  const [, turn, results] = listOf(row === undefined ? [] : sent(row).messages);
  const { id } = fieldsOf(listOf(turn?.content)[0]);
  expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  expect(listOf(results?.content)[0]).toMatchObject({ type: "tool_result", tool_use_id: id });
});

test("C67 earlier turns are sent unchanged on every later turn", () => {
  const turns = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello." },
    { role: "system", content: "Now rhyme." },
    { role: "user", content: "Go" },
    { role: "assistant", content: "So." },
    { role: "user", content: "On" },
  ];
  for (const upstream of upstreams) {
    const client = upstream === "openai-chat" ? "anthropic-messages" : "openai-chat";
    const [head, ...rest] = turns;
    const asked = (count: number): Fields =>
      client === "openai-chat"
        ? { messages: turns.slice(0, count) }
        : { system: head?.content, messages: rest.slice(0, count - 1) };
    const texts = [2, 5, 7].map((count) => {
      const body = sent({ number: "C67", what: "", client, upstream, sends: asked(count) });
      return JSON.stringify(body.messages ?? body.input ?? body.contents).slice(0, -1);
    });
    const [first = "", second = "", third = ""] = texts;
    expect([upstream, second.startsWith(first), third.startsWith(second)]).toEqual([
      upstream,
      true,
      true,
    ]);
  }
});

const pings = [
  ["openai-chat", ": ping\n"],
  ["openai-responses", ": ping\n"],
  ["anthropic-messages", 'event: ping\ndata: {"type": "ping"}\n\n'],
] as const;

describe("C41 and C42 a keep-alive is a whole event of the dialect, or a comment that ends no event", () => {
  test.each(pings)("%s", (name, frame) => {
    for (const upstream of upstreams) {
      const body = { model: "acme/large", ...clientOf(name).ask("Hi"), stream: true };
      expect([upstream, pingIn(adaptIn(name, { body, route: routeIn(upstream) }))]).toEqual([
        upstream,
        frame,
      ]);
    }
  });
});

describe("every regression number is covered", () => {
  const here = new Set([...streamRows, ...requestRows].map(({ number }) => number));
  test.each(Array.from({ length: 86 }, (_, index) => `C${index + 1}`))("%s", (number) => {
    const told = [here.has(number), number in elsewhere, number in notOurs].filter(Boolean);
    expect(told.length).toBeGreaterThan(0);
    const files = elsewhere[number] ?? [];
    expect(files.filter((path) => !existsSync(join(import.meta.dir, "../../..", path)))).toEqual(
      [],
    );
  });
});
