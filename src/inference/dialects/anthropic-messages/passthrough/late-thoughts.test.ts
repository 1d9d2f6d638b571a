import { describe, expect, test } from "bun:test";
import { LateThoughts, withTextLast } from "./late-thoughts.ts";

const text = { type: "text", text: "Done." };
const thinking = { type: "thinking", thinking: "Hm.", signature: "s" };
const redacted = { type: "redacted_thinking", data: "x" };
const call = { type: "tool_use", id: "t", name: "look", input: {} };

describe("a whole answer", () => {
  test.each([
    ["thinking after a text goes before it", [text, thinking], [thinking, text]],
    [
      "all of it goes before the last text",
      [call, text, thinking, redacted],
      [call, thinking, redacted, text],
    ],
    ["text at the end stays", [thinking, text], undefined],
    ["thinking alone stays", [thinking], undefined],
    ["thinking after a call stays", [text, call, thinking], undefined],
    ["no content stays", [], undefined],
  ])("%s", (_, content, expected) => {
    expect(withTextLast(content)).toEqual(expected);
  });
});

describe("a stream", () => {
  /** Returns the frames that are sent, a name for each event: `2+` starts a block, `2.` is its delta, `2-` its end. */
  function sent(events: readonly (readonly [frame: string, kind?: string])[]): string {
    const late = new LateThoughts();
    const passed = events.map(([frame, kind]) => {
      const index = Number(frame[0]);
      const sign = frame[1];
      const type = sign === "+" ? "start" : sign === "." ? "delta" : "stop";
      const event = { type: `content_block_${type}`, index };
      if (sign === "+") return late.pass({ ...event, content_block: { type: kind } }, frame);
      return late.pass(sign === "." ? { ...event, delta: { type: kind } } : event, frame);
    });
    return passed.filter((frame) => frame !== "").join(" ");
  }

  const said = [["0+", "text"], ["0.", "text_delta"], ["0-"]] as const;
  const thought = [["1+", "thinking"], ["1.", "thinking_delta"], ["1-"]] as const;

  test("keeps thinking that nothing follows", () => {
    expect(sent([...said, ...thought])).toBe("0+ 0. 0-");
    expect(sent([...said, ["1.", "thinking_delta"], ["1-"]])).toBe("0+ 0. 0-");
  });

  test("sends thinking before what follows it", () => {
    expect(sent([...said, ...thought, ["2+", "tool_use"], ["2-"]])).toBe("0+ 0. 0- 1+1.1-2+ 2-");
    expect(sent([...said, ...thought, ["2.", "text_delta"]])).toBe("0+ 0. 0- 1+1.1-2.");
  });

  test("sends thinking at once that follows no text", () => {
    expect(sent([["0+", "tool_use"], ["0-"], ...thought])).toBe("0+ 0- 1+ 1. 1-");
    expect(sent(thought)).toBe("1+ 1. 1-");
  });
});
