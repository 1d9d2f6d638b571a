import { RedisClient } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { endProcesses, type GatewayProcess, temporaryDirectory } from "../../support/process.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import type { RecordedRequest } from "../../support/upstream/recorded-request.ts";
import { createKey, give, manage } from "./support/manage.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";
import { isNightly } from "../../support/nightly.ts";

/** Within what is held of a line: while Valkey is being filled again, no line can take more. */
const usage = { prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 };
/** What one line costs, in nano-USD. */
const lineNano = 20 * 500 + 100 * 1500;

/** The lines of the batch, and after how many a gateway is killed. */
const [lines, killEvery] = isNightly ? [10_000, 500] : [100, 50];

/** A line of a file of results. */
interface Result {
  custom_id: string;
  response: { request_id: string; body: { error?: { code: string } } } | null;
}

/** The money of all tests: two batches and a half. */
const creditsNano = lines * lineNano * 2.5;

/** Returns the number of the line that a request comes from. */
const lineIn = (request: RecordedRequest): number =>
  Number(/line (\d+)/.exec(request.body)?.[1] ?? Number.NaN);

describe.skipIf(!hasRedis)(`batches on several gateways${redisMissing}`, () => {
  let nodes: Nodes;
  /** The three gateways that run. */
  let running: [GatewayProcess, GatewayProcess, GatewayProcess];
  beforeAll(async () => {
    nodes = await startNodes({
      credits: String(creditsNano / 1e9),
      yaml: `
batch: { concurrency: 8, native: never }
files: { url: ${temporaryDirectory()} }
`,
    });
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
    running = [...nodes.gateways, await nodes.start()];
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

  const clientOf = (apiKey: string): OpenAI =>
    new OpenAI({ apiKey, baseURL: `${running[0].url}/api/v1`, maxRetries: 0 });

  async function submit(openai: OpenAI): Promise<string> {
    const text = Array.from({ length: lines }, (_, index) =>
      JSON.stringify({
        custom_id: `l${index}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: {
          model: "acme/large",
          max_tokens: 100,
          messages: [{ role: "user", content: `line ${index}` }],
        },
      }),
    ).join("\n");
    const file = await openai.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    });
    const batch = await openai.batches.create({
      input_file_id: file.id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    return batch.id;
  }

  /** Waits until a batch is as it should be. */
  async function shownWhen(
    openai: OpenAI,
    id: string,
    isSo: (batch: Batch) => boolean,
  ): Promise<Batch> {
    for (;;) {
      const batch = await openai.batches.retrieve(id);
      if (isSo(batch)) return batch;
      await Bun.sleep(50);
    }
  }

  const isCompleted = ({ status }: Batch): boolean => status === "completed";
  const completedOf = ({ request_counts: counts }: Batch): number => counts?.completed ?? 0;

  /** Reads the lines of a file of results; none where there is no file. */
  async function resultsIn(openai: OpenAI, fileId: string | null | undefined): Promise<Result[]> {
    if (fileId === null || fileId === undefined) return [];
    const text = await (await openai.files.content(fileId)).text();
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Result);
  }

  /** Returns how many requests of a key were charged, and the sum in nano-USD. */
  async function chargedTo(hash: string): Promise<{ charges: number; nano: number }> {
    const [row] = await nodes.query(
      `select count(*) as charges, coalesce(sum(cost_nano), 0) as nano from generations
       where cost_nano > 0 and key_id in (select id from llm_keys where hash = '${hash}')`,
    );
    return { charges: Number(row?.["charges"]), nano: Number(row?.["nano"]) };
  }

  test(
    "each line is answered and charged once while gateways are killed and Valkey is emptied",
    async () => {
      const { key, hash } = await createKey(running, {});
      const openai = clientOf(key);
      const gate = nodes.upstream.gate();
      // The last quarter waits for what breaks, so that it breaks in the middle of any batch.
      nodes.upstream.script((each) => {
        const answer = chatAnswer(each, { usage });
        return lineIn(each) < (lines * 3) / 4 ? answer : [gate, ...answer];
      });
      const id = await submit(openai);
      let [kills, isFlushed] = [0, false];
      for (;;) {
        await Bun.sleep(50);
        const { status, request_counts: counts } = await openai.batches.retrieve(id);
        if (status === "completed") break;
        const done = counts?.completed ?? 0;
        if (done > (kills + 1) * killEvery && done < lines) {
          kills += 1;
          await running[1].kill9();
          running[1] = await nodes.start();
        }
        if (!isFlushed && done > lines / 3) {
          isFlushed = true;
          const valkey = new RedisClient(nodes.redis.url);
          await valkey.send("FLUSHALL", []);
          valkey.close();
        }
        if (kills > 0 && isFlushed) gate.open();
      }
      expect(kills).toBeGreaterThan(0);
      const batch = await openai.batches.retrieve(id);
      expect(batch).toMatchObject({
        request_counts: { total: lines, completed: lines, failed: 0 },
        error_file_id: null,
      });
      const output = await resultsIn(openai, batch.output_file_id);
      expect(output.length).toBe(lines);
      expect(new Set(output.map(({ custom_id: name }) => name)).size).toBe(lines);
      expect(new Set(output.map(({ response }) => response?.request_id)).size).toBe(lines);
      expect(await chargedTo(hash)).toEqual({ charges: lines, nano: lines * lineNano });
    },
    240_000 + lines * 60,
  );

  test(
    "after its key is revoked in the middle, every line has a result, and answers alone are charged",
    async () => {
      const { key, hash } = await createKey(running, {});
      const { key: reading } = await createKey(running, {});
      const gate = nodes.upstream.gate();
      nodes.upstream.script((each) => {
        const answer = chatAnswer(each, { usage });
        return lineIn(each) < lines / 2 ? answer : [gate, ...answer];
      });
      const id = await submit(clientOf(key));
      const openai = clientOf(reading);
      await shownWhen(openai, id, (batch) => completedOf(batch) >= lines / 2);
      await manage(running[1], `/keys/${hash}`, { method: "DELETE" });
      for (const { url } of running)
        await pollUntil(async () => {
          const headers = { authorization: `Bearer ${key}` };
          return (await fetch(`${url}/api/v1/auth/key`, { headers })).status === 401;
        });
      gate.open();
      const batch = await shownWhen(openai, id, isCompleted);
      const answered = await resultsIn(openai, batch.output_file_id);
      const refused = await resultsIn(openai, batch.error_file_id);
      expect(refused.length).toBeGreaterThan(0);
      expect(batch.request_counts).toEqual({
        total: lines,
        completed: answered.length,
        failed: refused.length,
      });
      const names = [...answered, ...refused].map(({ custom_id: name }) => name);
      expect([names.length, new Set(names).size]).toEqual([lines, lines]);
      expect(new Set(refused.map(({ response }) => response?.body.error?.code))).toEqual(
        new Set(["invalid_api_key"]),
      );
      expect(await chargedTo(hash)).toEqual({
        charges: answered.length,
        nano: answered.length * lineNano,
      });
    },
    240_000 + lines * 60,
  );

  test(
    "a balance that runs out in the middle pauses the batch, and is never passed",
    async () => {
      nodes.upstream.script((each) => chatAnswer(each, { usage }));
      const { key, hash } = await createKey(running, {});
      const openai = clientOf(key);
      const spent = async (): Promise<number> => {
        const [row] = await nodes.query("select sum(cost_nano) as nano from generations");
        return Number(row?.["nano"]);
      };
      // Two batches do not fit into what the tests before have left.
      const ids = [await submit(openai), await submit(openai)];
      // None was given, so that what is there is the note about the pause.
      const isPaused = ({ metadata }: Batch): boolean => Boolean(metadata);
      await Promise.all(
        ids.map((id) => shownWhen(openai, id, (batch) => isPaused(batch) || isCompleted(batch))),
      );
      const batches = await Promise.all(ids.map((id) => openai.batches.retrieve(id)));
      expect(batches.some(isCompleted) && batches.every(isCompleted)).toBe(false);
      expect(await spent()).toBeLessThanOrEqual(creditsNano);
      await give(running[1], (lines * lineNano * 2) / 1e9);
      for (const id of ids) {
        const batch = await shownWhen(openai, id, isCompleted);
        const output = await resultsIn(openai, batch.output_file_id);
        expect(new Set(output.map(({ custom_id: name }) => name)).size).toBe(lines);
        expect(output.length).toBe(lines);
        expect(batch.error_file_id).toBeNull();
      }
      const { charges, nano } = await chargedTo(hash);
      expect(charges).toBe(lines * 2);
      // The last requests before the end of the money may have had a lower cap than asked for.
      expect(nano).toBeLessThanOrEqual(lines * 2 * lineNano);
      expect(await spent()).toBeLessThanOrEqual(creditsNano + lines * lineNano * 2);
    },
    240_000 + lines * 60,
  );
});
