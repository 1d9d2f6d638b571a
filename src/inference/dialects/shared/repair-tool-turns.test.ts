import { describe, expect, test } from "bun:test";
import type { Message } from "../../canonical/message.ts";
import { repairToolTurns } from "./tools.ts";

/**
 * A word a message: `u` user, `s` system, `(ab)` a turn that calls a and b, `=a` the result of a,
 * `!a` an invented one.
 */
function conversation(script: string): Message[] {
  return script.split(" ").map((word): Message => {
    if (word === "u") return { role: "user", parts: [] };
    if (word === "s") return { role: "system", parts: [] };
    if (word.startsWith("=")) return { role: "tool", toolCallId: word.slice(1), parts: [] };
    const ids = [...word.slice(1, -1)];
    return {
      role: "assistant",
      parts: ids.map((id) => ({
        type: "tool-call",
        kind: "function",
        id,
        name: "f",
        arguments: "{}",
      })),
    };
  });
}

function script(messages: readonly Message[]): string {
  return messages
    .map((message) => {
      if (message.role === "tool")
        return `${message.isError === true ? "!" : "="}${message.toolCallId}`;
      if (message.role === "assistant")
        return `(${message.parts.map((part) => (part.type === "tool-call" ? part.id : "")).join("")})`;
      return message.role === "user" ? (message.parts.length > 0 ? "text" : "u") : "s";
    })
    .join(" ");
}

describe("repairToolTurns", () => {
  const rows: [before: string, after: string][] = [
    ["u (ab) =a =b u", "u (ab) =a =b u"],
    ["u (ab) =b =a u", "u (ab) =b =a u"],
    ["u () u", "u () u"],
    ["u (ab) =a u", "u (ab) =a !b u"],
    ["u (a)", "u (a) !a"],
    ["u =a u", "u text u"],
    ["(a) =x =a u", "(a) =a text u"],
    ["(a) =a =a u", "(a) =a text u"],
    ["(a) s =a u", "(a) !a s text u"],
    ["(a) (a) =a", "(a) !a (a_2) =a_2"],
    ["(a) =a (ab) =b =a (a) =a", "(a) =a (a_2b) =b =a_2 (a_3) =a_3"],
    ["(aa) =a =a u", "(aa_2) =a =a_2 u"],
    ["(aa) =a u", "(aa_2) =a !a_2 u"],
  ];
  test.each(rows)("changes %s to %s", (before, after) => {
    expect(script(repairToolTurns(conversation(before)))).toBe(after);
  });
});
