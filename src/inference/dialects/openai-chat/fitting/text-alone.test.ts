import { expect, test } from "bun:test";
import { fitBody } from "./fit-body.ts";
import { textAlone } from "./text-alone.ts";

const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
const words = { type: "text", text: "Look:" };

const history = [
  { role: "user", content: [words, picture] },
  { role: "assistant", content: "A dot." },
  { role: "tool", tool_call_id: "c", content: [{ type: "file", file: { file_id: "f" } }] },
];

test("pictures and files of the whole history become notes, and are named as lost", () => {
  const reason = "the provider reads text alone";
  expect(textAlone(history, { seesPictures: false })).toEqual({
    messages: [
      {
        role: "user",
        content: [words, { type: "text", text: "[picture left out: this model reads text alone]" }],
      },
      { role: "assistant", content: "A dot." },
      {
        role: "tool",
        tool_call_id: "c",
        content: [{ type: "text", text: "[file left out: this model reads text alone]" }],
      },
    ],
    losses: [
      { field: "messages[0].content[1]", reason },
      { field: "messages[2].content[0]", reason },
    ],
  });
});

test("text stays as it is", () => {
  expect(
    textAlone(
      [
        { role: "user", content: [words] },
        { role: "user", content: "Hi" },
      ],
      { seesPictures: false },
    ),
  ).toBe(undefined);
});

test("only upstreams that read text alone get the notes", () => {
  const body = { messages: history };
  const sentTo = (readsTextAlone: boolean) =>
    fitBody(body, { deviations: { readsTextAlone }, reasons: false, upstreamModel: "m" });
  expect(sentTo(false)).toEqual({ body, losses: [] });
  const { body: fitted, losses } = sentTo(true);
  expect(JSON.stringify(fitted)).not.toContain("image_url");
  expect(losses).toHaveLength(2);
});
