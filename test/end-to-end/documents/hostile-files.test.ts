import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { eventually } from "../scenarios/support/eventually.ts";
import { converterChildren } from "../../support/documents/converter-children.ts";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture } from "../../support/documents/encode-picture.ts";
import type { HostileFile } from "../../support/documents/hostile/hostile-file.ts";
import { hostileFiles } from "../../support/documents/hostile/hostile-files.ts";
import { spoiledFiles } from "../../support/documents/hostile/damaged-files.ts";
import { isNightly } from "../../support/nightly.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

/**
 * What the converter has at most, as its module says; each may still be on its way out when its
 * successor begins.
 */
const childrenMax = 2 * Math.min(4, Math.max(2, Math.floor(availableParallelism() / 2)));

let gateway: TestGateway;
beforeAll(async () => void (gateway = await startGateway({ sandbox: true })));
afterAll(() => gateway.stop());

/** Every other file comes as a form, whose file may be empty; the others in JSON. */
function send({ bytes }: Pick<HostileFile, "bytes">, place: number): Promise<Response> {
  if (place % 2 === 1 && bytes.length > 0)
    return gateway.post("/ocr/extract", { image: Buffer.from(bytes).toString("base64") });
  const form = new FormData();
  form.set("image", new File([new Uint8Array(bytes)], "scan.png"));
  return fetch(`${gateway.baseUrl}/ocr/extract`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
}

interface Ending {
  name: string;
  answer: string;
}

/**
 * Sends files, eight at once since the queue for converters is bounded, and tells what became of
 * each, and of the converters.
 */
async function sendAll(
  files: readonly HostileFile[],
): Promise<{ endings: Ending[]; childrenMost: number }> {
  const endings: Ending[] = [];
  const left = [...files.entries()];
  let childrenMost = 0;
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, file] = next;
      const response = await send(file, place);
      const { error } = (await response.json()) as { error?: { code: string } };
      endings.push({ name: file.name, answer: `${response.status} ${error?.code ?? "text"}` });
      childrenMost = Math.max(childrenMost, converterChildren()?.length ?? 0);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return { endings, childrenMost };
}

const chat = { model: "sandbox/chat:free", messages: [{ role: "user", content: "Hello" }] };

/** Files that are corrupted at random places, from one seed. */
const spoiledCount = isNightly ? 70 : 25;

describe("hostile files", () => {
  test("200 and more are each refused, while other requests are served, by few child processes", async () => {
    const files = (await hostileFiles()).filter(({ harmless }) => harmless !== true);
    expect(files.length).toBeGreaterThanOrEqual(200);
    const sending = sendAll(files);
    for (let times = 0; times < 20; times += 1)
      expect((await gateway.post("/chat/completions", chat)).status).toBe(200);
    const { endings, childrenMost } = await sending;
    expect(endings.filter(({ answer }) => answer !== "502 ocr_extraction_error")).toEqual([]);
    expect(childrenMost).toBeLessThanOrEqual(childrenMax);
  }, 240_000);

  test("files that readers can handle are read without an error", async () => {
    const files = (await hostileFiles()).filter(({ harmless }) => harmless === true);
    const { endings } = await sendAll(files);
    expect(endings.filter(({ answer }) => answer !== "200 text")).toEqual([]);
  }, 240_000);

  test(`${spoiledCount} corrupted files return a text or an error`, async () => {
    const { endings } = await sendAll(await spoiledFiles(spoiledCount));
    const answers = new Set(endings.map(({ answer }) => answer));
    expect([...answers].filter((answer) => answer !== "200 text")).toEqual([
      "502 ocr_extraction_error",
    ]);
  }, 240_000);

  test("afterwards a file is read as before, and no child process has crashed", async () => {
    const page = drawPage({
      width: 640,
      height: 120,
      texts: [{ text: "The invoice was paid", x: 40, y: 70, size: 32 }],
    });
    const response = await send({ bytes: await encodePicture.png(page) }, 0);
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { text: "The invoice was paid" },
    ]);
    expect(await gateway.metrics.text()).not.toMatch(
      /conversion_duration_seconds_count\{[^}]*outcome="failed"/,
    );
  }, 240_000);
});

test("child processes end with their gateway", async () => {
  const other = await startGateway();
  const before = converterChildren() ?? [];
  await other.post("/ocr/extract", {
    image: Buffer.from("%PDF-1.7 and nothing of the kind").toString("base64"),
  });
  const own = (converterChildren() ?? []).filter((pid) => !before.includes(pid));
  await other.stop();
  // A child is ended, not asked; the system needs a moment to forget it.
  await eventually(
    "no child is left",
    () => !(converterChildren() ?? []).some((pid) => own.includes(pid)),
  );
  expect(own.length).toBe(process.platform === "linux" ? 1 : 0);
}, 240_000);
