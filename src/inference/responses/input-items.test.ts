import { expect, test } from "bun:test";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { listedItem, pageOfItems, storedItemPlace, type ItemsQuery } from "./conversation.ts";

const responseId = `resp_${"1".repeat(32)}`;
const items = ["a", "b", "c", "d", "e"].map((id) => ({
  type: "message",
  role: "user",
  id,
  content: [],
}));
const page = (query: Partial<ItemsQuery>) =>
  pageOfItems(items, {
    responseId,
    query: { order: "desc", limit: 20, after: undefined, ...query },
  });

const pages: [string, Partial<ItemsQuery>, string, boolean][] = [
  ["all, newest first", {}, "edcba", false],
  ["all, oldest first", { order: "asc" }, "abcde", false],
  ["the first two", { limit: 2 }, "ed", true],
  ["the next two", { limit: 2, after: "d" }, "cb", true],
  ["the last one", { limit: 2, after: "b" }, "a", false],
  ["exactly the rest", { limit: 2, after: "c" }, "ba", false],
  ["nothing after the last item", { after: "a" }, "", false],
  ["items in ascending order", { order: "asc", limit: 3, after: "b" }, "cde", false],
];
test.each(pages)("a page of input items has %s", (_, query, ids, hasMore) => {
  const { data, ...rest } = page(query);
  expect(data.map(({ id }) => id).join("")).toBe(ids);
  expect(rest).toEqual({
    object: "list",
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
    has_more: hasMore,
  });
});

test("a page after an unknown item is refused", () => {
  expect(() => page({ after: "z" })).toThrow(GatewayError);
});

test("every item is listed with an id that resolves to it", () => {
  const bare: Record<string, unknown>[] = [
    { role: "user", content: "Hi" },
    { type: "function_call", call_id: "c" },
    { type: "function_call_output", call_id: "c" },
    { type: "web_search_call" },
  ];
  const listed = bare.map((item, index) => listedItem(item, { responseId, index }));
  expect(listed.map(({ id }) => id.slice(0, id.indexOf("_")))).toEqual([
    "msg",
    "fc",
    "fco",
    "item",
  ]);
  expect(listed.map(({ id }) => storedItemPlace(id))).toEqual(
    bare.map((_, index) => ({ responseId, index })),
  );
  expect(storedItemPlace(`msg_${"1".repeat(32)}`)).toBeUndefined();
});

test("messages are listed with their content as parts", () => {
  const place = { responseId, index: 0 };
  expect(listedItem({ role: "user", content: "Hi" }, place)).toMatchObject({
    type: "message",
    status: "completed",
    content: [{ type: "input_text", text: "Hi" }],
  });
  expect(listedItem({ role: "assistant", content: "Yes", id: "msg_1" }, place)).toMatchObject({
    id: "msg_1",
    content: [{ type: "output_text", text: "Yes", annotations: [] }],
  });
  const parts = [{ type: "input_image", image_url: "data:," }];
  expect(listedItem({ role: "user", content: parts }, place)).toMatchObject({ content: parts });
});
