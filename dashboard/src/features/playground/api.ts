import type { Answers, Bodies, Row } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, request, sending } from "../../lib/api.ts";

/** A conversation that is kept. */
export type Conversation = Row<"GET /conversations">;

export const keepsQuery = queryOptions({
  queryKey: ["conversation-settings"],
  queryFn: () => request<Answers["GET /conversations/settings"]>("/conversations/settings"),
  staleTime: 60_000,
});
export const conversationsQuery = queryOptions({
  queryKey: ["conversations"],
  queryFn: () => request<List<Conversation>>("/conversations?limit=20"),
});
export const openConversation = (id: string) =>
  request<Answers["GET /conversations/{id}"]>(`/conversations/${encodeURIComponent(id)}`);

/** A message to keep. */
export type NewMessage = Bodies["POST /conversations"]["messages"][number];

/** Keeps messages: in a new conversation, or at the end of one. Gives its id. */
export async function keepMessages(
  id: string | undefined,
  messages: readonly NewMessage[],
): Promise<string> {
  if (id === undefined)
    return (
      await request<Conversation>("/conversations", sending("POST /conversations", { messages }))
    ).id;
  await request(
    `/conversations/${encodeURIComponent(id)}/messages`,
    sending("POST /conversations/{id}/messages", { messages }),
  );
  return id;
}

/** Presets by the name that stands in place of a model. */
export const presetsQuery = queryOptions({
  queryKey: ["preset-names"],
  queryFn: () => request<Answers["GET /presets"]>("/presets"),
  staleTime: 60_000,
});
