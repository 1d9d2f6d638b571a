import { afterAll, beforeAll, expect, test } from "bun:test";
import { seededRandom } from "../process/support/seeded-random.ts";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture, pictureFormats } from "../../support/documents/encode-picture.ts";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

/** A file that is cut somewhere, has some of its bytes changed, or goes on as another one. */
function spoiled(bytes: Uint8Array, { random, other }: { random: () => number; other: Uint8Array }): Uint8Array {
  const at = (length: number): number => Math.floor(random() * length);
  const kind = at(3);
  if (kind === 0) return bytes.slice(0, 12 + at(bytes.length - 12));
  if (kind === 1) return Buffer.concat([bytes.subarray(0, 8 + at(64)), other]);
  const changed = Uint8Array.from(bytes);
  for (let count = 0; count < 8; count += 1) changed[8 + at(changed.length - 8)] = at(256);
  return changed;
}

test("70 spoiled files of every kind end with a text or a refusal, each, while other requests are served", async () => {
  const canvas = drawPage({ width: 160, height: 50, texts: [{ text: "text", x: 20, y: 35 }] });
  const files = await Promise.all(pictureFormats.map(async (format): Promise<Uint8Array> => encodePicture[format](canvas)));
  files.push(writePdf([{ texts: [{ text: "The text of a page", x: 60, y: 700 }] }]));
  const random = seededRandom(7);
  const answers = await Promise.all(Array.from({ length: 70 }, async (_, index) => {
    const bytes = spoiled(files[index % files.length] as Uint8Array, { random, other: files[(index + 3) % files.length] as Uint8Array });
    // A few at a time: the queue for converters is bounded.
    await gatekeeper.turn();
    const response = await gateway.post("/ocr/extract", { image: Buffer.from(bytes).toString("base64") }).finally(() => gatekeeper.leave());
    const { error } = (await response.json()) as { error?: { code: string } };
    return `${response.status} ${error?.code ?? "text"}`;
  }));
  expect((await gateway.get("/credits")).status).toBe(200);
  const counts = Object.groupBy(answers, (answer) => answer);
  expect(Object.keys(counts).filter((answer) => answer !== "200 text")).toEqual(["502 ocr_extraction_error"]);
}, 30_000);

/** Lets eight in at once. */
const gatekeeper = {
  inside: 0,
  waiting: [] as (() => void)[],
  async turn(): Promise<void> {
    if (this.inside >= 8) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.inside += 1;
  },
  leave(): void {
    this.inside -= 1;
    this.waiting.shift()?.();
  },
};
