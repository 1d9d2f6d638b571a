import { describe, expect, test } from "bun:test";
import { readRealtimeFrame } from "./realtime-events.ts";

const append = (bytes: number): object => ({
  type: "input_audio_buffer.append",
  audio: Buffer.alloc(bytes).toString("base64"),
});

describe("frames of sound", () => {
  test.each([1, 2, 3, 100, 959, 960, 961, 48_000])("of %i bytes are counted exactly", (bytes) => {
    expect(readRealtimeFrame(JSON.stringify(append(bytes)))).toEqual({ soundBytes: bytes });
    const spaced = JSON.stringify({ event_id: "e", ...append(bytes) }, null, 2);
    expect(readRealtimeFrame(spaced)).toEqual({ soundBytes: bytes });
    const { audio } = append(bytes) as { audio: string };
    const reversed = JSON.stringify({ audio, type: "input_audio_buffer.append" });
    expect(readRealtimeFrame(reversed)).toEqual({ soundBytes: bytes });
  });

  test.each(["response.output_audio.delta", "response.audio.delta", "session.output_audio.delta"])(
    "of a provider are counted as %s",
    (type) => {
      const delta = Buffer.alloc(960).toString("base64");
      const frame = JSON.stringify({ type, event_id: "e", response_id: "r", delta });
      expect(readRealtimeFrame(frame)).toEqual({ soundBytes: 960 });
    },
  );
});

const padding = "A".repeat(1_000);

test.each([
  [
    "with its type again",
    `{"type":"input_audio_buffer.append","audio":"${padding}","type":"response.create"}`,
  ],
  [
    "with two types at its head",
    `{"type":"input_audio_buffer.append","type":"response.create","audio":"${padding}"}`,
  ],
  [
    "with an escaped type",
    `{"type":"input_audio_buffer.append","\\u0074ype":"response.create","audio":"${padding}"}`,
  ],
])("a frame of sound %s is the event that a parser reads", (_, frame) => {
  expect(readRealtimeFrame(frame)).toMatchObject({ type: "response.create" });
});

test.each(["", "{", "null", "[]", '"text"', '{"type":1}', "\u0000", '{"audio":"AAAA"'])(
  "%j is no event",
  (frame) => {
    expect(readRealtimeFrame(frame)).toMatchObject({ invalid: expect.any(String) });
  },
);
