import type { Bodies } from "../../lib/api-types.ts";
import { queryOptions } from "@tanstack/react-query";
import { type List, request, sending } from "../../lib/api.ts";

/** A conversation that is kept. */
export interface Conversation {
  id: string;
  title: string;
  model: string | null;
  updated_at: string;
}

/** A message of one. */
interface KeptMessage {
  role: string;
  content: string;
  model?: string | null;
}

export const keepsQuery = queryOptions({
  queryKey: ["conversation-settings"],
  queryFn: () => request<{ keep: boolean }>("/conversations/settings"),
  staleTime: 60_000,
});
export const conversationsQuery = queryOptions({
  queryKey: ["conversations"],
  queryFn: () => request<List<Conversation>>("/conversations?limit=20"),
});
export const openConversation = (id: string) =>
  request<Conversation & { messages: readonly KeptMessage[] }>(
    `/conversations/${encodeURIComponent(id)}`,
  );

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
  queryFn: () => request<List<{ slug: string; name: string }>>("/presets"),
  staleTime: 60_000,
});
