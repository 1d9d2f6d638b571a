import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  gate,
  startParseProvider,
  type ParseProvider,
} from "../../support/documents/parse-provider.ts";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";

/** Odd on purpose: what comes back has to be these very bytes. */
const result =
  '{ "result_type":"document",\n "document" : {"page_count": 3, "markdown":"# \\u00e9 é", "chunks":[]}, "units":1.50e1 }';
const body =
  '{"source": {"type":"url", "url":"https://example.com/a.pdf",  "file_name":"a.pdf"}, "x_unknown": [1.0]}';

let upstream: ParseProvider;
beforeAll(() => {
  upstream = startParseProvider();
});
afterAll(() => upstream.stop());

const root = mkdtempSync(join(tmpdir(), "switchyard-documents-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let databases = 0;
const engines = [
  { name: "SQLite", open: async () => `sqlite:${join(root, `${++databases}.db`)}` },
  { name: "Postgres", open: migratedDatabase },
];

describe.each(engines)("document jobs on $name", ({ open }) => {
  let storageUrl: string;
  let gateway: TestGateway;

  const start = (): Promise<TestGateway> =>
    startGateway({
      storageUrl,
      providers: [
        provider({
          id: "parser",
          base_url: upstream.baseUrl,
          dialect: { documents: "documents-parse" },
          api_key: "parser-secret",
        }),
      ],
    });
  beforeEach(async () => {
    upstream.questions.length = 0;
    storageUrl = await open();
    gateway = await start();
  }, 240_000);
  afterEach(() => gateway.stop());

  async function restart(): Promise<void> {
    await gateway.stop();
    gateway = await start();
  }

  const parse = (options: { key?: string; wait?: number; text?: string } = {}): Promise<Response> =>
    gateway.post(`/documents/parse?wait_seconds=${options.wait ?? 0}`, options.text ?? body, {
      headers: options.key === undefined ? {} : { "idempotency-key": options.key },
    });

  test("a result within the wait is relayed byte for byte, and so is the request's body", async () => {
    upstream.will(() => new Response(result));
    const response = await parse({ wait: 30 });
    expect({ status: response.status, text: await response.text() }).toEqual({
      status: 200,
      text: result,
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-service-documents-pages": "3",
      "x-service-provider-chain": "parser",
      "x-service-credential-source": "platform",
      "content-type": "application/json",
    });
    expect(upstream.questions).toEqual([
      {
        path: "/v1/documents/parse?wait_seconds=60",
        body,
        authorization: "Bearer parser-secret",
        idempotencyKey: expect.stringMatching(/^job_/),
      },
    ]);
  });

  test("a running job is continued with its idempotency key, or with its job id without one", async () => {
    const done = gate();
    upstream.will(async () => {
      await done.opened;
      return new Response(result);
    });
    const [keyed, keyless] = [await parse({ key: "first" }), await parse()];
    const [first, second] = [await keyed.json(), await keyless.json()] as {
      job_id: string;
      status: string;
    }[];
    expect([keyed.status, keyless.status]).toEqual([202, 202]);
    const status = expect.stringMatching(/queued|running/);
    expect(first).toMatchObject({
      object: "document_job",
      job_id: expect.stringMatching(/^job_/),
      status,
    });
    expect(first?.job_id).not.toBe(second?.job_id);
    const picked = [
      parse({ key: "first", wait: 30 }),
      parse({ key: second?.job_id ?? "", wait: 30 }),
    ];
    done.open();
    for (const response of await Promise.all(picked)) expect(await response.text()).toBe(result);
    expect(upstream.questions.length).toBe(2);
  });

  test("an idempotency key makes one job in parallel requests, and another body returns 409", async () => {
    upstream.will(() => new Response(result));
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => parse({ key: "once", wait: 30 })),
    );
    for (const answer of answers) expect(await answer.text()).toBe(result);
    expect(upstream.questions.length).toBe(1);
    const other = await parse({ key: "once", text: body.replace("1.0", "1") });
    expect([other.status, await other.json()]).toMatchObject([
      409,
      { error: { code: "conflict", param: "Idempotency-Key" } },
    ]);
  });

  test("an unfinished job is polled again under the same idempotency key", async () => {
    upstream.will(
      () => new Response('{"job_id":"theirs","status":"queued"}', { status: 202 }),
      () => new Response(result),
    );
    const response = await parse({ wait: 30 });
    expect(await response.text()).toBe(result);
    expect(new Set(upstream.questions.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(upstream.questions.length).toBe(2);
  });

  test("a job survives a restart while it runs, and its result a restart after it ended", async () => {
    const [asked, askedAgain] = [gate(), gate()];
    upstream.will(
      () => {
        asked.open();
        return new Promise<Response>(() => undefined);
      },
      () => {
        askedAgain.open();
        return new Response(result);
      },
    );
    expect((await parse({ key: "long" })).status).toBe(202);
    await asked.opened;
    await restart();
    // The gateway goes on with the job before the client asks for it.
    await askedAgain.opened;
    expect(await (await parse({ key: "long", wait: 30 })).text()).toBe(result);
    const [before, after] = upstream.questions;
    expect(after).toEqual(before as never);
    await restart();
    const again = await parse({ key: "long" });
    expect([
      again.status,
      await again.text(),
      again.headers.get("x-service-documents-pages"),
    ]).toEqual([200, result, "3"]);
    expect(upstream.questions.length).toBe(2);
  });
});
