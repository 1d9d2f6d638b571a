import { sql, type Kysely, type SqlBool, type Transaction } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { DistinctTime } from "../../platform/kernel/time/distinct-time.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { mayBeId, newId } from "../../platform/kernel/ids.ts";
import {
  titleOf,
  type Conversation,
  type ConversationTables,
  type KeptResponse,
  type Message,
  type NewMessage,
} from "./conversation.ts";
import { pageOf, readCursor, type HubCaller, type Page } from "./entry.ts";
import type { SearchIndex } from "./search-index.ts";

/** Options of conversations. */
export interface ConversationsOptions {
  database: Kysely<ConversationTables>;
  index: SearchIndex;
  clock: Clock;
  /** Days for which they are kept after their last message. */
  keepDays: number;
  /** Returns whether a workspace or a key requires zero data retention. */
  keepsNothing(ownerId: string): boolean;
}

/** The most messages of a conversation, and the most conversations of a person. */
const messagesMax = 1_000;
const conversationsMax = 5_000;
const indexedCharactersMax = 500_000;
const dayMs = 86_400_000;

type Person = Pick<HubCaller, "workspaceId" | "personId">;

const noConversation = (): GatewayError =>
  new GatewayError(
    "not_found",
    "There is no conversation with this id. GET /conversations lists them.",
  );

/**
 * Conversations, each visible only to its person. Nothing is stored where the workspace has turned
 * that off, or under zero data retention.
 */
export class Conversations {
  private readonly time: DistinctTime;
  private readonly mutex = new KeyedMutex();

  constructor(private readonly options: ConversationsOptions) {
    this.time = new DistinctTime(options.clock);
  }

  /** Returns whether a workspace keeps conversations, by its own setting. */
  async keeps(workspaceId: string): Promise<boolean> {
    const row = await this.options.database
      .selectFrom("conversation_settings")
      .select("keep")
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row?.keep !== 0;
  }

  /**
   * Turns the keeping of a workspace's conversations on or off. Existing ones stay until they are
   * deleted.
   */
  async setKeeping(workspaceId: string, keep: boolean): Promise<void> {
    const values = { keep: keep ? 1 : 0, updated_at_ms: this.options.clock.nowMs() };
    await this.options.database
      .insertInto("conversation_settings")
      .values({ workspace_id: workspaceId, ...values })
      .onConflict((conflict) => conflict.column("workspace_id").doUpdateSet(values))
      .execute();
  }

  /** Returns the person's conversations, the one with the newest message first. */
  async list(
    person: Person,
    {
      starred,
      search,
      cursor,
      offset = 0,
      limit,
    }: {
      starred?: boolean | undefined;
      search?: string | undefined;
      cursor?: string | undefined;
      offset?: number | undefined;
      limit: number;
    },
  ): Promise<Page<Conversation>> {
    await this.written(person);
    let query = this.shown(person);
    if (starred !== undefined) query = query.where("c.starred", "=", starred ? 1 : 0);
    if (search !== undefined)
      query = query.where(this.options.index.matches("c.id", { audience: "conversation", search }));
    if (cursor !== undefined) {
      const { atMs, id } = readCursor(cursor);
      query = query.where(sql<SqlBool>`(c.updated_at_ms, c.id) < (${atMs}, ${id})`);
    }
    const rows = await query
      .orderBy("c.updated_at_ms", "desc")
      .orderBy("c.id", "desc")
      .limit(limit + 1)
      .offset(cursor === undefined ? offset : 0)
      .execute();
    return pageOf(rows.map(conversationOf), limit, ({ updatedAtMs, id }) => ({
      atMs: updatedAtMs,
      id,
    }));
  }

  /** Returns the person's conversation with this id. Throws `not_found`. */
  async find(person: Person, id: string): Promise<Conversation> {
    await this.written(person);
    return this.read(person, id);
  }

  /**
   * Resolves once earlier responses are stored in their conversations, which happens beside their
   * requests.
   */
  private written({ workspaceId }: Person): Promise<void> {
    return this.mutex.run(workspaceId, async () => undefined);
  }

  private async read(person: Person, id: string): Promise<Conversation> {
    const row = mayBeId(id)
      ? await this.shown(person).where("c.id", "=", id).executeTakeFirst()
      : undefined;
    if (row === undefined) throw noConversation();
    return conversationOf(row);
  }

  /** Returns the messages of a conversation, oldest first. */
  async messages(id: string): Promise<Message[]> {
    const rows = await this.options.database
      .selectFrom("conversation_messages")
      .selectAll()
      .where("conversation_id", "=", id)
      .orderBy("position")
      .execute();
    return rows.map((row) => ({
      role: row.role,
      content: row.content,
      model: row.model,
      responseId: row.response_id,
      createdAtMs: row.created_at_ms,
    }));
  }

  /**
   * Stores a new conversation. Throws `conflict` where none are kept, or the person has too many.
   */
  create(
    person: Person,
    {
      title,
      model,
      messages,
    }: { title?: string | undefined; model?: string | null; messages: readonly NewMessage[] },
  ): Promise<Conversation> {
    return this.mutex.run(person.workspaceId, async () => {
      await this.assertKept(person.workspaceId);
      const { count } = await this.options.database
        .selectFrom("conversations")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("workspace_id", "=", person.workspaceId)
        .where("person_id", "=", person.personId)
        .executeTakeFirstOrThrow();
      if (Number(count) >= conversationsMax) {
        throw new GatewayError(
          "conflict",
          `You have ${conversationsMax} conversations. Delete some.`,
        );
      }
      const id = await this.insert(person, {
        title: title ?? titleOf(messages),
        model: model ?? null,
        source: "playground",
        messages,
      });
      return this.read(person, id);
    });
  }

  /**
   * Adds messages to a conversation. Throws `not_found`, and `conflict` where none are kept or
   * there are too many.
   */
  append(person: Person, id: string, messages: readonly NewMessage[]): Promise<Conversation> {
    return this.mutex.run(person.workspaceId, async () => {
      await this.assertKept(person.workspaceId);
      const { messageCount } = await this.read(person, id);
      if (messageCount + messages.length > messagesMax) {
        throw new GatewayError(
          "conflict",
          `A conversation has at most ${messagesMax} messages. Begin another one.`,
        );
      }
      await this.options.database
        .transaction()
        .execute((transaction) => this.write(transaction, id, { messages, responseId: null }));
      return this.read(person, id);
    });
  }

  /** Renames, stars or unstars a conversation. Throws `not_found`. */
  async change(
    person: Person,
    id: string,
    { title, starred }: { title?: string | undefined; starred?: boolean | undefined },
  ): Promise<Conversation> {
    await this.find(person, id);
    await this.options.database.transaction().execute(async (transaction) => {
      await transaction
        .updateTable("conversations")
        .set({
          ...(title === undefined ? {} : { title }),
          ...(starred === undefined ? {} : { starred: starred ? 1 : 0 }),
        })
        .where("id", "=", id)
        .execute();
      await this.reindex(transaction, id);
    });
    return this.find(person, id);
  }

  /** Deletes a conversation. Throws `not_found`. Stored responses stay. */
  async remove(person: Person, id: string): Promise<void> {
    await this.find(person, id);
    await this.options.database
      .transaction()
      .execute((transaction) => this.removeAll(transaction, [id]));
  }

  /** Adds a stored response to the conversation that it continues, or starts one with it. */
  async keepResponse({
    id: responseId,
    previousResponseId,
    keyId,
    messages,
    model,
    ...person
  }: KeptResponse): Promise<void> {
    const { keepsNothing, database } = this.options;
    if (keepsNothing(keyId) || keepsNothing(person.workspaceId) || messages.length === 0) return;
    await this.mutex.run(person.workspaceId, async () => {
      if (!(await this.keeps(person.workspaceId))) return;
      const before =
        previousResponseId === null
          ? undefined
          : await database
              .selectFrom("conversation_messages as m")
              .innerJoin("conversations as c", "c.id", "m.conversation_id")
              .select(["c.id"])
              .where("m.response_id", "=", previousResponseId)
              .where("c.workspace_id", "=", person.workspaceId)
              .where("c.person_id", "=", person.personId)
              .executeTakeFirst();
      if (before === undefined) {
        await this.insert(person, {
          title: titleOf(messages),
          model,
          source: "responses",
          messages,
          responseId,
        });
        return;
      }
      await database
        .transaction()
        .execute((transaction) => this.write(transaction, before.id, { messages, responseId }));
    });
  }

  /**
   * Removes a response's messages from their conversation; a conversation that becomes empty is
   * deleted.
   */
  forgetResponse(workspaceId: string, responseId: string): Promise<void> {
    return this.mutex.run(workspaceId, () =>
      this.options.database.transaction().execute(async (transaction) => {
        const row = await transaction
          .selectFrom("conversation_messages as m")
          .innerJoin("conversations as c", "c.id", "m.conversation_id")
          .select("c.id")
          .where("m.response_id", "=", responseId)
          .where("c.workspace_id", "=", workspaceId)
          .executeTakeFirst();
        if (row === undefined) return;
        await transaction
          .deleteFrom("conversation_messages")
          .where("response_id", "=", responseId)
          .execute();
        const left = await transaction
          .selectFrom("conversation_messages")
          .select("position")
          .where("conversation_id", "=", row.id)
          .executeTakeFirst();
        if (left === undefined) await this.removeAll(transaction, [row.id]);
        else await this.reindex(transaction, row.id);
      }),
    );
  }

  /** Deletes messages that are past the retention of conversations. */
  async purge(): Promise<void> {
    const { database, clock, keepDays } = this.options;
    const beforeMs = clock.nowMs() - keepDays * dayMs;
    for (let ids = [""]; ids.length > 0; ) {
      const old = await database
        .selectFrom("conversations")
        .select("id")
        .where("updated_at_ms", "<", beforeMs)
        .limit(100)
        .execute();
      ids = old.map(({ id }) => id);
      if (ids.length > 0)
        await database.transaction().execute((transaction) => this.removeAll(transaction, ids));
    }
    await database
      .deleteFrom("conversation_messages")
      .where("created_at_ms", "<", beforeMs)
      .execute();
  }

  private async assertKept(workspaceId: string): Promise<void> {
    if (this.options.keepsNothing(workspaceId)) {
      throw new GatewayError(
        "conflict",
        "The workspace demands zero data retention, so no conversation is kept.",
      );
    }
    if (await this.keeps(workspaceId)) return;
    throw new GatewayError(
      "conflict",
      "The workspace keeps no conversations. Its admins change that at PATCH /conversations/settings.",
    );
  }

  private async insert(
    { workspaceId, personId }: Person,
    {
      title,
      model,
      source,
      messages,
      responseId = null,
    }: Pick<Conversation, "title" | "model" | "source"> & {
      messages: readonly NewMessage[];
      responseId?: string | null;
    },
  ): Promise<string> {
    const nowMs = this.time.nextMs();
    const id = newId("cnv", nowMs);
    await this.options.database.transaction().execute(async (transaction) => {
      await transaction
        .insertInto("conversations")
        .values({
          id,
          workspace_id: workspaceId,
          person_id: personId,
          title,
          starred: 0,
          source,
          model,
          created_at_ms: nowMs,
          updated_at_ms: nowMs,
        })
        .execute();
      await this.write(transaction, id, { messages, responseId });
    });
    return id;
  }

  private async write(
    transaction: Transaction<ConversationTables>,
    id: string,
    { messages, responseId }: { messages: readonly NewMessage[]; responseId: string | null },
  ): Promise<void> {
    const nowMs = this.time.nextMs();
    const { last } = await transaction
      .selectFrom("conversation_messages")
      .select(({ fn }) => fn.max<number | null>("position").as("last"))
      .where("conversation_id", "=", id)
      .executeTakeFirstOrThrow();
    const first = last === null ? 0 : Number(last) + 1;
    const kept = messages.slice(0, Math.max(0, messagesMax - first));
    if (kept.length > 0) {
      await transaction
        .insertInto("conversation_messages")
        .values(
          kept.map(({ role, content, model }, index) => ({
            conversation_id: id,
            position: first + index,
            role,
            content,
            model: model ?? null,
            response_id: responseId,
            created_at_ms: nowMs,
          })),
        )
        .execute();
    }
    const model = messages.findLast((message) => message.model)?.model;
    await transaction
      .updateTable("conversations")
      .set({ updated_at_ms: nowMs, ...(model ? { model } : {}) })
      .where("id", "=", id)
      .execute();
    await this.reindex(transaction, id);
  }

  private async reindex(transaction: Transaction<ConversationTables>, id: string): Promise<void> {
    const row = await transaction
      .selectFrom("conversations")
      .select("title")
      .where("id", "=", id)
      .executeTakeFirst();
    if (row === undefined) return;
    const messages = await transaction
      .selectFrom("conversation_messages")
      .select("content")
      .where("conversation_id", "=", id)
      .orderBy("position", "desc")
      .execute();
    const text = [row.title, ...messages.map(({ content }) => content)]
      .join("\n")
      .slice(0, indexedCharactersMax);
    await this.options.index.put(transaction, { ownerId: id, audience: "conversation" }, text);
  }

  private async removeAll(
    transaction: Transaction<ConversationTables>,
    ids: readonly string[],
  ): Promise<void> {
    await transaction.deleteFrom("conversations").where("id", "in", ids).execute();
    await transaction
      .deleteFrom("conversation_messages")
      .where("conversation_id", "in", ids)
      .execute();
    for (const id of ids) await this.options.index.remove(transaction, { ownerId: id });
  }

  private shown({ workspaceId, personId }: Person) {
    return this.options.database
      .selectFrom("conversations as c")
      .selectAll("c")
      .select(
        sql<number>`(select count(*) from conversation_messages m where m.conversation_id = c.id)`.as(
          "message_count",
        ),
      )
      .where("c.workspace_id", "=", workspaceId)
      .where("c.person_id", "=", personId);
  }
}

const conversationOf = (
  row: ConversationTables["conversations"] & { message_count: number },
): Conversation => ({
  id: row.id,
  title: row.title,
  starred: row.starred === 1,
  source: row.source,
  model: row.model,
  messageCount: Number(row.message_count),
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
});
