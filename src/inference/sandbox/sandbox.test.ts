import { afterAll, expect, test } from "bun:test";
import { systemClock } from "../../platform/kernel/clock.ts";
import { directiveTable } from "./directives.ts";
import { startSandbox } from "./sandbox.ts";

const sandbox = startSandbox({ clock: { ...systemClock, nowMs: () => 1_700_000_000_000 } });
afterAll(() => sandbox.stop());

const prefix = "[simulated by the Switchyard sandbox]";

/** The way of one dialect to say a thing, and to read the answer. */
interface Way {
  path: string;
  streamPath?: string;
  body(text: string, more?: Record<string, unknown>): Record<string, unknown>;
  /** Path to the text in a whole answer. */
  text: string;
  error: string;
  streamError: string;
}

const ways: Record<string, Way> = {
  "openai-chat": {
    path: "/v1/chat/completions",
    body: (text, more) => ({ model: "m", messages: [{ role: "user", content: text }], ...more }),
    text: "choices.0.message.content",
    error: "error.message",
    streamError: 'data: {"error":',
  },
  "anthropic-messages": {
    path: "/v1/messages",
    body: (text, more) => ({
      model: "m",
      max_tokens: 500,
      messages: [{ role: "user", content: text }],
      ...more,
    }),
    text: "content.0.text",
    error: "error.message",
    streamError: "event: error\n",
  },
  "openai-responses": {
    path: "/v1/responses",
    body: (text, more) => ({ model: "m", input: text, ...more }),
    text: "output.0.content.0.text",
    error: "error.message",
    streamError: "event: response.failed\n",
  },
  "google-generate": {
    path: "/v1beta/models/m:free:generateContent",
    streamPath: "/v1beta/models/m:free:streamGenerateContent?alt=sse",
    body: (text) => ({ contents: [{ role: "user", parts: [{ text }] }] }),
    text: "candidates.0.content.parts.0.text",
    error: "error.message",
    streamError: 'data: {"error":',
  },
};

const post = (path: string, body: unknown, signal: AbortSignal | null = null): Promise<Response> =>
  fetch(sandbox.baseUrl + path, { method: "POST", body: JSON.stringify(body), signal });

const ask = (way: Way, text: string): Promise<Response> => post(way.path, way.body(text));

const askStream = (way: Way, text: string, signal: AbortSignal | null = null): Promise<Response> =>
  post(way.streamPath ?? way.path, way.body(text, { stream: true }), signal);

function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, key) => Reflect.get(Object(inner), key), value);
}

/** All texts that a stream's complete events carry, in the fields of any dialect. */
function streamedText(sse: string): string {
  const fields = ["choices.0.delta.content", "delta.text", "candidates.0.content.parts.0.text"];
  return sse
    .slice(0, sse.lastIndexOf("\n\n") + 1)
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line): unknown => JSON.parse(line.slice("data: ".length)))
    .map((data) =>
      at(data, "type") === "response.output_text.delta"
        ? at(data, "delta")
        : (fields.map((field) => at(data, field)).find((text) => typeof text === "string") ?? ""),
    )
    .join("");
}

for (const [name, way] of Object.entries(ways)) {
  test(`${name}: a response says that it is simulated`, async () => {
    const response = await ask(way, "Hello there");
    expect(response.status).toBe(200);
    expect(at(await response.json(), way.text)).toStartWith(`${prefix} You wrote: "Hello there".`);
  });

  test(`${name}: the same request gets the same bytes, whole and streamed`, async () => {
    const [one, other] = await Promise.all([ask(way, "same"), ask(way, "same")]);
    expect(await one.text()).toBe(await other.text());
    const [first, second] = await Promise.all([askStream(way, "same"), askStream(way, "same")]);
    expect(await first.text()).toBe(await second.text());
  });

  test(`${name}: a stream has the text of the whole response`, async () => {
    const whole = at(await (await ask(way, "Größe 漢字 😀")).json(), way.text);
    const response = await askStream(way, "Größe 漢字 😀");
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    expect(streamedText(await response.text())).toBe(String(whole));
  });

  test(`${name}: refuses with the requested status and retry-after`, async () => {
    const response = await ask(way, "sandbox:status=429 sandbox:retry_after=7");
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("7");
    expect(at(await response.json(), way.error)).toContain("429");
  });

  test(`${name}: refuses invalid JSON and missing fields`, async () => {
    const broken = await fetch(sandbox.baseUrl + way.path, { method: "POST", body: "{" });
    const empty = await post(way.path, {});
    for (const response of [broken, empty]) {
      expect(response.status).toBe(400);
      expect(at(await response.json(), way.error)).toBeString();
    }
  });

  test(`${name}: delays the response and each token`, async () => {
    const start = performance.now();
    await (await ask(way, "sandbox:delay_ms=40")).text();
    const afterDelay = performance.now();
    await (await askStream(way, "sandbox:tokens=10 sandbox:token_delay_ms=5")).text();
    expect(afterDelay - start).toBeGreaterThanOrEqual(39);
    expect(performance.now() - afterDelay).toBeGreaterThanOrEqual(45);
  });

  test(`${name}: cuts a stream after the requested events`, async () => {
    const response = await askStream(way, "sandbox:cut_after=3");
    const received = await readUntilFailure(response);
    expect(received.failed).toBe(true);
    // A reset may overtake what the client has not read yet; `dialect.test.ts` pins the exact events.
    expect(prefix.slice(0, 12)).toStartWith(streamedText(received.text));
  });

  test(`${name}: cuts a whole response in the middle`, async () => {
    const received = await readUntilFailure(await ask(way, "sandbox:cut_after=3"));
    expect(received.failed).toBe(true);
    expect(() => JSON.parse(received.text)).toThrow();
  });

  test(`${name}: resets the connection before the headers`, async () => {
    // Without keep-alive: on a connection that was used before, fetch takes a reset for a stale one
    // and retries.
    const body = JSON.stringify(way.body("sandbox:cut_after=0", { stream: true }));
    const url = sandbox.baseUrl + (way.streamPath ?? way.path);
    await expect(fetch(url, { method: "POST", body, keepalive: false })).rejects.toThrow();
  });

  test(`${name}: sends its error event after the requested events`, async () => {
    const text = await (await askStream(way, "sandbox:error_after=2")).text();
    expect(text).toContain(way.streamError);
    expect(text).toContain("failed in the middle");
    expect(streamedText(text)).toStartWith(prefix.slice(0, 8));
    expect(streamedText(text)).not.toContain("sandbox]");
  });

  test(`${name}: stalls until the client disconnects`, async () => {
    const abort = new AbortController();
    const response = await askStream(way, "sandbox:stall_after=2", abort.signal);
    const reader = response.body?.getReader();
    let text = "";
    while (!streamedText(text).startsWith(prefix.slice(0, 8))) {
      text += new TextDecoder().decode((await reader?.read())?.value);
    }
    const next = reader?.read();
    abort.abort();
    await expect(next).rejects.toThrow();
  });

  test(`${name}: returns an empty response`, async () => {
    expect(streamedText(await (await askStream(way, "sandbox:empty")).text())).toBe("");
    expect((await ask(way, "sandbox:empty")).status).toBe(200);
  });
}

async function readUntilFailure(response: Response): Promise<{ text: string; failed: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
    return { text, failed: false };
  } catch {
    return { text, failed: true };
  }
}

test("counts the tokens of a Messages request as in its response", async () => {
  const body = ways["anthropic-messages"]?.body("How many tokens are these?", { system: "Count." });
  const counted = at(await (await post("/v1/messages/count_tokens", body)).json(), "input_tokens");
  const used = at(await (await post("/v1/messages", body)).json(), "usage.input_tokens");
  expect(counted).toBe(8);
  expect(used).toBe(counted);
});

test("returns 404 for unknown paths", async () => {
  expect((await post("/v1/nothing", {})).status).toBe(404);
});

test("lists its models", async () => {
  const list = await (await fetch(`${sandbox.baseUrl}/v1/models`)).json();
  expect(at(list, "data.0.id")).toBe("sandbox-chat");
});

test("every directive has a description", () => {
  for (const facts of Object.values(directiveTable)) expect(facts.meaning).toEndWith(".");
});

test("stopping the sandbox ends stalled responses", async () => {
  const other = startSandbox({ clock: systemClock });
  const body = {
    model: "m",
    stream: true,
    messages: [{ role: "user", content: "sandbox:stall_after=2" }],
  };
  const response = await fetch(`${other.baseUrl}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  const text = response.text();
  await other.stop();
  await expect(text).rejects.toThrow();
});
