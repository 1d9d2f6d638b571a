import { expect, test } from "bun:test";
import type { FrameSource } from "../../platform/kernel/frame-source.ts";
import { GenerateFrames, type StreamForm } from "./generate-frames.ts";

/** A source that gives these frames, and then ends. */
function sourceOf(frames: readonly string[]): FrameSource {
  const left = [...frames];
  return { next: () => Promise.resolve(left.shift()), cancel: () => undefined };
}

async function written(form: StreamForm, frames: readonly string[]): Promise<string[]> {
  const source = new GenerateFrames(sourceOf(frames), form);
  const pieces: string[] = [];
  for (let next = await source.next(); next !== undefined; next = await source.next())
    pieces.push(next);
  return pieces;
}

const ping = "\n\n";
const events = ['data: {"a":1}\n\n', ping, ping, 'data: {"b":2}\n\ndata: {"c":3}\n\n'];
const error = 'data: {"error":{"code":502}}\n\n{"error":{"code":502}}\n\n';

test("events are passed on, and signs of life are blank lines", async () => {
  expect(await written("events", events)).toEqual(events);
});

test("an array has white space as its signs of life", async () => {
  const text = (await written("array", [ping, ...events])).join("");
  expect(text).toMatch(/^\s+\[\{"a":1\}\s{2,}/);
  expect(JSON.parse(text)).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
  expect(JSON.parse((await written("array", [])).join(""))).toEqual([]);
});

test("without gaps, a sign of life is the beginning of the next event", async () => {
  const pieces = await written("events-without-gaps", [ping, ...events, ping]);
  expect(pieces).toEqual([
    "data: ",
    '{"a":1}\n\n',
    "data: ",
    " ",
    '{"b":2}\n\ndata: {"c":3}\n\n',
    "data: ",
  ]);
});

test("the two frames of an error are pieces of their own; an array has the first", async () => {
  const [event = "", bare = ""] = await written("events", [error]);
  expect([event, bare]).toEqual([error.slice(0, event.length), error.slice(event.length)]);
  expect(bare).toStartWith('{"error"');
  expect(JSON.parse((await written("array", [error])).join(""))).toEqual([
    { error: { code: 502 } },
  ]);
});
