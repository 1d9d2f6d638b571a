import { afterEach, expect, mock, spyOn, test } from "bun:test";
import { systemClock } from "../../platform/kernel/clock.ts";
import { bodyPieces } from "./body-pieces.ts";

afterEach(() => mock.restore());

/** Reads a body whose pieces of this size come at once, or late. Returns the waits for more of it. */
async function waitsOf(size: number, { late }: { late: boolean }): Promise<number[]> {
  let left = 12;
  const source = {
    async pull(control: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
      if (late) await new Promise((resolve) => setTimeout(resolve, 5));
      left -= 1;
      if (left < 0) control.close();
      else control.enqueue(new Uint8Array(size));
    },
  };
  // A piece is made only when it is asked for.
  const body = new ReadableStream(source, { highWaterMark: 0 });
  const waits: number[] = [];
  spyOn(Bun, "sleep").mockImplementation((ms) => {
    waits.push(Number(ms));
    return Promise.resolve();
  });
  const request = new Request("http://gateway.example/", { method: "POST", body });
  let bytes = 0;
  for await (const piece of bodyPieces(request, 1_000_000)) bytes += piece.byteLength;
  expect(bytes).toBe(12 * size);
  return waits;
}

test("more is gathered of a body that trickles, for longer and longer", async () => {
  const waits = await waitsOf(1_000, { late: true });
  expect(waits.slice(0, 5)).toEqual([1, 3, 7, 15, 31]);
  expect(waits.at(-1)).toBe(250);
});

test("nothing is gathered of a body with large pieces", async () => {
  expect(await waitsOf(20_000, { late: true })).toEqual([]);
});

test("a body of which a byte comes now and then is refused, although more of it is gathered", async () => {
  let nowMs = 0;
  spyOn(systemClock, "livedMs").mockImplementation(() => nowMs);
  spyOn(Bun, "sleep").mockImplementation((ms) => {
    nowMs += Number(ms);
    return Promise.resolve();
  });
  let count = 0;
  const source = {
    pull(control: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
      count += 1;
      // The first ones are awaited, and later ones have come while more was gathered.
      if (count <= 12) nowMs += 5;
      if (count > 400) control.close();
      else control.enqueue(new Uint8Array(1));
    },
  };
  const body = new ReadableStream(source, { highWaterMark: 0 });
  const request = new Request("http://gateway.example/", { method: "POST", body });
  const reading = Array.fromAsync(bodyPieces(request, 1_000_000));
  await expect(reading).rejects.toMatchObject({ code: "request_timeout" });
  expect(nowMs).toBeLessThan(11_000);
});
