import { RedisClient } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { endProcesses, type GatewayProcess, temporaryDirectory } from "../../support/process.ts";
import { hasRedis, redisMissing } from "../../support/redis.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { createKey } from "./support/manage.ts";
import { startNodes, type Nodes } from "./support/nodes.ts";

/** Within what is held of a line: while Valkey is being filled again, no line can take more. */
const usage = { prompt_tokens: 20, completion_tokens: 100, total_tokens: 120 };
/** What one line costs, in nano-USD. */
const lineNano = 20 * 500 + 100 * 1500;

/** The lines of the batch, and after how many a gateway is killed. */
const isNight = process.env["TEST_ENGINES"] === "all";
const [lines, killEvery] = isNight ? [10_000, 500] : [200, 100];

describe.skipIf(!hasRedis)(`batches on several gateways${redisMissing}`, () => {
  let nodes: Nodes;
  beforeAll(async () => {
    nodes = await startNodes({
      credits: "5000",
      yaml: `
batch: { concurrency: 8, native: never }
files: { url: ${temporaryDirectory()} }
`,
    });
    nodes.upstream.script((each) => chatAnswer(each, { usage }));
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await nodes.stop();
  });

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

  test(
    "each line is answered and charged once while gateways are killed and Valkey is emptied",
    async () => {
      const { key } = await createKey(nodes.gateways, {});
      const openai = new OpenAI({
        apiKey: key,
        baseURL: `${nodes.gateways[0].url}/api/v1`,
        maxRetries: 0,
      });
      let other: GatewayProcess = nodes.gateways[1];
      const third = await nodes.start();
      const id = await submit(openai);
      let [kills, isFlushed] = [0, false];
      for (;;) {
        await Bun.sleep(50);
        const { status, request_counts: counts } = await openai.batches.retrieve(id);
        if (status === "completed") break;
        const done = counts?.completed ?? 0;
        if (done > (kills + 1) * killEvery && done < lines) {
          kills += 1;
          await other.kill9();
          other = await nodes.start();
        }
        if (!isFlushed && done > lines / 3) {
          isFlushed = true;
          const valkey = new RedisClient(nodes.redis.url);
          await valkey.send("FLUSHALL", []);
          valkey.close();
        }
      }
      const batch = await openai.batches.retrieve(id);
      expect(batch).toMatchObject({
        request_counts: { total: lines, completed: lines, failed: 0 },
        error_file_id: null,
      });
      const output = (await (await openai.files.content(batch.output_file_id ?? "")).text())
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { custom_id: string; response: { request_id: string } });
      expect(output.length).toBe(lines);
      expect(new Set(output.map(({ custom_id: name }) => name)).size).toBe(lines);
      expect(new Set(output.map(({ response }) => response.request_id)).size).toBe(lines);
      const [row] = await nodes.query(
        "select count(*) as charges, sum(cost_nano) as nano from generations where cost_nano > 0",
      );
      expect([Number(row?.["charges"]), Number(row?.["nano"])]).toEqual([lines, lines * lineNano]);
      await third.terminate();
    },
    240_000 + lines * 60,
  );
});
