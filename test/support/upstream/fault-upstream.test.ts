import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type FaultUpstream, refusingBaseUrl, startFaultUpstream } from "./fault-upstream.ts";
import { RawClient } from "./raw-client.ts";
import * as step from "./steps.ts";

let upstream: FaultUpstream;
beforeEach(async () => {
  upstream = await startFaultUpstream();
});
afterEach(() => upstream.stop());

const ask = (init: RequestInit & { path?: string } = {}): Promise<Response> =>
  fetch(`${upstream.baseUrl}${init.path ?? "/chat/completions"}`, {
    method: "POST",
    body: "{}",
    ...init,
  });

async function rawAnswer(script: step.Script): Promise<RawClient> {
  upstream.script(script);
  const client = await RawClient.connect(upstream.port);
  client.post("/v1/chat/completions");
  return client;
}

describe("bytes of the fault upstream", () => {
  test("a chunked stream has exactly these bytes, one segment for each step", async () => {
    const client = await rawAnswer([
      step.head(),
      step.sse({ a: 1 }),
      step.sse("[DONE]"),
      step.end(),
    ]);
    await client.receivedUpTo("0\r\n\r\n");
    expect(client.segments.map(String)).toEqual([
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n",
      'f\r\ndata: {"a":1}\n\n\r\n',
      "e\r\ndata: [DONE]\n\n\r\n",
      "0\r\n\r\n",
    ]);
  });

  test("a JSON response has its length and a status name", async () => {
    const client = await rawAnswer(
      step.json({ a: "ä" }, { status: 429, headers: { "retry-after": "7" } }),
    );
    await client.receivedUpTo("}");
    expect(client.text).toBe(
      "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 10\r\ncontent-type: application/json\r\n" +
        'retry-after: 7\r\n\r\n{"a":"ä"}',
    );
  });

  test("until-close framing ends with the connection", async () => {
    const client = await rawAnswer([
      step.head({ framing: "until-close" }),
      step.body("abc"),
      step.end(),
    ]);
    expect(await client.ended).toBe("FIN");
    expect(client.text).toEndWith(
      "connection: close\r\ncontent-type: text/event-stream\r\n\r\nabc",
    );
  });

  test("a body is split at the given offsets, even inside a character", async () => {
    const framing = { contentLength: 7 };
    const client = await rawAnswer([step.head({ framing }), ...step.bodySplit("aä😀", [2, 5])]);
    await client.receivedUpTo("aä😀");
    expect(client.segments.slice(1).map((segment) => segment.length)).toEqual([2, 3, 2]);
  });

  test("wire bytes are split at any offset or at every byte", async () => {
    const wireSteps = step.json({ ok: true });
    const whole = await rawAnswer([step.split([], wireSteps)]);
    await whole.receivedUpTo("}");
    expect(whole.segments).toHaveLength(1);
    const two = await rawAnswer([step.split([3, 20], wireSteps)]);
    await two.receivedUpTo("}");
    expect(two.segments.map((segment) => segment.length)).toEqual([3, 17, whole.text.length - 20]);
    const every = await rawAnswer([step.split("every-byte", wireSteps)]);
    await every.receivedUpTo("}");
    expect(every.segments).toHaveLength(whole.text.length);
    expect(every.text).toBe(whole.text);
  });

  test("raw bytes are sent unchanged", async () => {
    const client = await rawAnswer([
      step.raw("HTTP/1.1 200 OK\r\n"),
      step.raw("x: y\r\n\r\n"),
      step.cut(),
    ]);
    expect(await client.ended).toBe("FIN");
    expect(client.text).toBe("HTTP/1.1 200 OK\r\nx: y\r\n\r\n");
  });
});

describe("endings of the fault upstream", () => {
  test("a cut sends a FIN after the last byte", async () => {
    const client = await rawAnswer([step.head(), step.sse("a"), step.cut()]);
    expect(await client.ended).toBe("FIN");
    expect(client.text).toEndWith("data: a\n\n\r\n");
  });

  test("a reset sends a RST", async () => {
    const client = await rawAnswer([step.head(), step.sse("a"), step.reset()]);
    expect(await client.ended).toBe("RST");
  });

  test("a connection can close before the response", async () => {
    const client = await rawAnswer([step.cut()]);
    expect(await client.ended).toBe("FIN");
    expect(client.text).toBe("");
    const other = await rawAnswer([step.reset()]);
    expect(await other.ended).toBe("RST");
  });

  test("a refusing URL has no listener", async () => {
    await expect(fetch(refusingBaseUrl())).rejects.toThrow(/refused/i);
  });
});

describe("gates", () => {
  test("pause the script until they are opened", async () => {
    const gate = upstream.gate();
    const client = await rawAnswer([
      step.head(),
      step.sse("before"),
      gate,
      step.sse("after"),
      step.end(),
    ]);
    await gate.reached;
    await client.receivedUpTo("before\n\n\r\n");
    expect(client.text).not.toContain("after");
    gate.open();
    await client.receivedUpTo("0\r\n\r\n");
    expect(client.text).toContain("after");
  });

  test("that are already open do not pause it", async () => {
    const gate = upstream.gate();
    gate.open();
    const client = await rawAnswer([gate, ...step.json({})]);
    await client.receivedUpTo("{}");
  });
});

describe("recorded requests", () => {
  test("have method, path, headers and body", async () => {
    await ask({ path: "/x?y=1", headers: { "X-Trace": "t" }, body: '{"größe":1}' });
    const [request] = upstream.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/x?y=1", body: '{"größe":1}' });
    expect(request?.headers.get("x-trace")).toBe("t");
    expect(request?.json()).toEqual({ größe: 1 });
  });

  test("can be awaited, also when they have already arrived", async () => {
    const second = upstream.waitForRequest(2);
    await ask({ body: "1" });
    expect(Bun.peek.status(second)).toBe("pending");
    await ask({ body: "2" });
    expect((await second).body).toBe("2");
    expect((await upstream.waitForRequest(1)).body).toBe("1");
  });

  test("have bodies of 32 MB, with a length and chunked", async () => {
    const megabyte = "x".repeat(1024 * 1024);
    const whole = megabyte.repeat(32);
    upstream.script(step.json({}));
    await ask({ body: whole });
    async function* parts(): AsyncGenerator<string> {
      for (let count = 0; count < 32; count += 1) yield megabyte;
    }
    await ask({ body: new Response(parts()).body });
    expect(upstream.requests.map((request) => request.bytes.length)).toEqual([
      whole.length,
      whole.length,
    ]);
    expect(upstream.requests[1]?.headers.get("transfer-encoding")).toBe("chunked");
  });

  test("report that a response was sent to its end", async () => {
    await (await ask()).text();
    await upstream.requests[0]?.answered;
    expect(upstream.requests[0]).toMatchObject({ completed: true, wasAborted: false });
  });

  test.each([
    ["before the head", []],
    ["after the head", [step.head()]],
    ["in the middle", [step.head(), step.sse("a"), step.sse("b"), step.stall()]],
  ] as const)("report that a client left %s", async (_phase, script) => {
    upstream.script(script);
    const abort = new AbortController();
    const answer = ask({ signal: abort.signal }).then((response) => response.text());
    const request = await upstream.waitForRequest(1);
    const leftAtMs = performance.now();
    abort.abort();
    await expect(answer).rejects.toThrow();
    expect((await request.aborted) - leftAtMs).toBeWithin(0, 5_000);
    expect(request).toMatchObject({ completed: false, wasAborted: true });
  });

  test("report that a client left, by FIN or by RST, at a gate", async () => {
    for (const leave of ["leave", "vanish"] as const) {
      const gate = upstream.gate();
      const client = await rawAnswer([step.head(), gate, step.sse("never"), step.end()]);
      await gate.reached;
      client[leave]();
      await upstream.requests.at(-1)?.aborted;
      expect(upstream.requests.at(-1)?.wasAborted).toBe(true);
    }
  });

  test("do not report the upstream's own cut as an abort", async () => {
    const client = await rawAnswer([step.head(), step.cut()]);
    await client.ended;
    expect(upstream.requests[0]).toMatchObject({ completed: false, wasAborted: false });
  });
});

describe("connections of the fault upstream", () => {
  test("are reused for the next request", async () => {
    await (await ask()).text();
    await (await ask()).text();
    expect(upstream.connectionCount).toBe(1);
    expect(upstream.requests.map((request) => request.place)).toEqual([
      { connectionIndex: 0, indexOnConnection: 0 },
      { connectionIndex: 0, indexOnConnection: 1 },
    ]);
  });

  test("answer pipelined requests in order, each with its script", async () => {
    const gate = upstream.gate();
    upstream.enqueue([gate, ...step.json({ first: 1 })], step.json({ second: 2 }));
    const client = await RawClient.connect(upstream.port);
    client.post("/one");
    client.post("/two");
    await upstream.waitForRequest(2);
    await gate.reached;
    expect(client.text).toBe("");
    gate.open();
    await client.receivedUpTo('{"second":2}');
    expect(client.text.indexOf("first")).toBeLessThan(client.text.indexOf("second"));
  });

  test("are closed after a response when the script says so", async () => {
    const client = await rawAnswer([...step.json({}), step.cut()]);
    expect(await client.ended).toBe("FIN");
    expect(client.text).toEndWith("{}");
    expect(upstream.requests[0]?.completed).toBe(true);
  });

  test("are closed while idle when the test asks for it", async () => {
    const gate = upstream.gate();
    const idle = await rawAnswer(step.json({}));
    await idle.receivedUpTo("{}");
    const busy = await rawAnswer([gate, ...step.json({})]);
    await gate.reached;
    upstream.closeIdleConnections();
    expect(await idle.ended).toBe("FIN");
    expect(upstream.openConnectionCount).toBe(1);
    gate.open();
    await busy.receivedUpTo("{}");
  });

  test("of a client that waits for 100 Continue receive it", async () => {
    const client = await RawClient.connect(upstream.port);
    client.send("POST / HTTP/1.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n");
    await client.receivedUpTo("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("{}");
    expect((await upstream.waitForRequest(1)).body).toBe("{}");
  });

  test("deliver large responses to slow readers in full", async () => {
    const text = "y".repeat(8 * 1024 * 1024);
    upstream.script(step.json(text));
    expect(await (await ask()).json()).toBe(text);
  });

  test("are reset when the upstream stops, which does not count as an abort", async () => {
    const client = await rawAnswer([step.head(), step.stall()]);
    await client.receivedUpTo("\r\n\r\n");
    upstream.stop();
    await client.ended;
    expect(upstream.requests[0]?.wasAborted).toBe(false);
  });
});

describe("scripts of the fault upstream", () => {
  test("that are queued are used first, once each, then the default one", async () => {
    upstream.script((request) => step.json({ said: request.body }));
    upstream.enqueue(step.json("one"), () => step.json("two"));
    const answers = [await ask(), await ask(), await ask({ body: "three" })];
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([
      "one",
      "two",
      { said: "three" },
    ]);
  });

  test("with gzip are decoded by clients", async () => {
    upstream.script(step.json({ packed: true }, { gzip: true }));
    const answer = await ask();
    expect(await answer.json()).toEqual({ packed: true });
    upstream.script(step.gzipStream([step.sse("a"), step.sse("b")]));
    expect(await (await ask()).text()).toBe("data: a\n\ndata: b\n\n");
  });
});
