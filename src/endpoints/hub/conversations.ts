import { z } from "zod";
import { bootstrapUserId } from "../../identity/workspaces/bootstrap.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { Conversation, Message } from "../../mcp/hub/conversation.ts";
import { hubCallerOf, type HubCaller } from "../../mcp/hub/entry.ts";
import { plainText, workspaceOf } from "../account/account-fields.ts";
import { truthField } from "../admin/admin-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { bodyField, forHub, lineField, listObject, pageFields } from "./hub-fields.ts";
import { listSchema } from "../account/list-pages.ts";

const shared = { ...forHub, tag: "Conversations" } as const;
const reads = { managementScope: "read:llm-keys", session: true } as const;
const writes = { managementScope: "write:llm-keys", session: true } as const;

/** The largest body in bytes: a request may contain a whole conversation of the playground. */
const conversationBytesMax = 8 * 1024 * 1024;

const conversationSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("conversation"),
      title: z.string(),
      starred: z.boolean(),
      source: z
        .enum(["playground", "responses"])
        .describe("Origin: the playground, or stored responses."),
      model: z.string().nullable(),
      message_count: z.int(),
      created_at: z.string(),
      updated_at: z.string(),
    })
    .meta({ id: "Conversation" }),
);

const messageSchema = lazily(() =>
  z.object({
    object: z.literal("message"),
    role: z.string(),
    content: z.string(),
    model: z.string().nullable(),
    response_id: z.string().nullable().describe("The stored response that the message belongs to."),
    created_at: z.string(),
  }),
);

const wholeSchema = lazily(() =>
  conversationSchema()
    .extend({ messages: z.array(messageSchema()) })
    .meta({ id: "ConversationWithMessages" }),
);

const conversationObject = (conversation: Conversation): AnswerOf<typeof conversationSchema> => ({
  id: conversation.id,
  object: "conversation",
  title: conversation.title,
  starred: conversation.starred,
  source: conversation.source,
  model: conversation.model,
  message_count: conversation.messageCount,
  created_at: new Date(conversation.createdAtMs).toISOString(),
  updated_at: new Date(conversation.updatedAtMs).toISOString(),
});

const messageObject = ({
  role,
  content,
  model,
  responseId,
  createdAtMs,
}: Message): AnswerOf<typeof messageSchema> => ({
  object: "message",
  role,
  content,
  model,
  response_id: responseId,
  created_at: new Date(createdAtMs).toISOString(),
});

/**
 * Returns whose conversations a request concerns. A key that no person created belongs to the
 * operator of the first start, as its LLM key does.
 */
function personOf({ caller }: RequestContext<unknown, AccountCaller>): HubCaller {
  const hubCaller = hubCallerOf(caller);
  return caller.kind === "management-key" && caller.key.creatorUserId === null
    ? { ...hubCaller, personId: bootstrapUserId }
    : hubCaller;
}

async function whole(
  { conversations }: Pick<Dependencies, "conversations">,
  conversation: Conversation,
): Promise<AnswerOf<typeof wholeSchema>> {
  return {
    ...conversationObject(conversation),
    messages: (await conversations.messages(conversation.id)).map(messageObject),
  };
}

const listQuerySchema = z.object({ ...pageFields, starred: truthField });

export const listConversations = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/conversations",
  access: reads,
  summary: "List conversations.",
  description:
    "Returns only the conversations of the caller's person, without messages, the most recent message first. search matches titles " +
    "and messages.",
  query: listQuerySchema,
  response: () => listSchema(conversationSchema()),
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    const query = checkBody(listQuerySchema, Object.fromEntries(context.query));
    return context.json(
      listObject(await conversations.list(personOf(context), query), conversationObject),
    );
  },
});

const newMessageSchema = z.strictObject({
  role: z.enum(
    ["system", "developer", "user", "assistant", "tool"],
    "must be system, developer, user, assistant or tool",
  ),
  content: bodyField,
  model: plainText(200).min(1).optional(),
});
const messagesField = z
  .array(newMessageSchema, "must be a list of messages")
  .min(1, "must have a message")
  .max(1_000);

const newConversationSchema = z.strictObject({
  title: lineField(200).optional().describe("Default: the beginning of the first message."),
  model: plainText(200).min(1).optional(),
  messages: messagesField,
});

/** The refusal to OpenAI's SDKs, whose `conversations.create()` has this path. */
const noConversations =
  "Conversations of the Responses API are not offered. Continue a stored response with previous_response_id, or send all items as input.";

export const createConversation = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/conversations",
  access: { ...writes, llmKeysMiss: noConversations },
  idempotent: true,
  bodyBytesMax: conversationBytesMax,
  summary: "Store a conversation.",
  description:
    "Answers 409 if the workspace stores no conversations, by its setting or under zero data retention.",
  body: newConversationSchema,
  response: wholeSchema,
  async handle(context, dependencies: Pick<Dependencies, "conversations">) {
    const { title, model = null, messages } = context.body;
    const created = await dependencies.conversations.create(personOf(context), {
      title,
      model,
      messages,
    });
    context.changed = created.id;
    return context.json(await whole(dependencies, created));
  },
});

export const getConversation = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/conversations/:id",
  access: reads,
  summary: "Show a conversation with its messages.",
  response: wholeSchema,
  async handle(context, dependencies: Pick<Dependencies, "conversations">) {
    return context.json(
      await whole(
        dependencies,
        await dependencies.conversations.find(personOf(context), context.param("id")),
      ),
    );
  },
});

const changesSchema = z.strictObject({
  title: lineField(200).optional(),
  starred: z.boolean("must be true or false").optional(),
});

export const changeConversation = defineEndpoint({
  ...shared,
  method: "PATCH",
  path: "/conversations/:id",
  access: writes,
  bodyBytesMax: conversationBytesMax,
  summary: "Rename or star a conversation.",
  body: changesSchema,
  response: conversationSchema,
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    return context.json(
      conversationObject(
        await conversations.change(personOf(context), context.param("id"), context.body),
      ),
    );
  },
});

const appendSchema = z.strictObject({ messages: messagesField });

export const addMessages = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/conversations/:id/messages",
  access: writes,
  idempotent: true,
  // One row for each message would flood the log; the messages themselves say who wrote them, and
  // when (decision 0073).
  unaudited: true,
  bodyBytesMax: conversationBytesMax,
  summary: "Add messages to a conversation.",
  body: appendSchema,
  response: conversationSchema,
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    return context.json(
      conversationObject(
        await conversations.append(personOf(context), context.param("id"), context.body.messages),
      ),
    );
  },
});

export const deleteConversation = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/conversations/:id",
  access: writes,
  summary: "Delete a conversation.",
  description:
    "Stored responses remain; DELETE /responses/{id} deletes them, also from the conversation.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    await conversations.remove(personOf(context), context.param("id"));
    return context.json({ deleted: true, id: context.param("id") });
  },
});

const settingsSchema = lazily(() =>
  z.object({ object: z.literal("conversation_settings"), keep: z.boolean() }),
);
const settings = (keep: boolean): AnswerOf<typeof settingsSchema> => ({
  object: "conversation_settings",
  keep,
});

export const getConversationSettings = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/conversations/settings",
  access: reads,
  summary: "Show whether the workspace stores conversations.",
  response: settingsSchema,
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    return context.json(settings(await conversations.keeps(workspaceOf(context).id)));
  },
});

const settingsChangesSchema = z.strictObject({ keep: z.boolean("must be true or false") });

export const changeConversationSettings = defineEndpoint({
  ...shared,
  method: "PATCH",
  path: "/conversations/settings",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: conversationBytesMax,
  summary: "Turn the storage of conversations on or off.",
  description: "Stored conversations remain until they are deleted or their retention ends.",
  body: settingsChangesSchema,
  response: settingsSchema,
  async handle(context, { conversations }: Pick<Dependencies, "conversations">) {
    await conversations.setKeeping(workspaceOf(context).id, context.body.keep);
    return context.json(settings(context.body.keep));
  },
});
