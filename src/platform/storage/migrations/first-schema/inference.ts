import type { SchemaPart } from "./schema-part.ts";

/** Stored responses, document jobs, conversations, and the prices of models over time. */
export const inferenceSchema: SchemaPart = {
  tables: [
    // A provider's price of a model, from a time on.
    {
      name: "price_changes",
      clustered: true,
      columns: {
        model: "text not null",
        provider: "text not null",
        at_ms: "integer not null",
        prices: "text not null",
      },
      constraints: ["primary key (model, provider, at_ms)"],
    },
    // The long texts come last, so that following a conversation reads only what precedes them.
    // Only the first of the runs of a background response is charged under the response's own id.
    {
      name: "stored_responses",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        key_id: "text not null",
        created_at_ms: "integer not null",
        completed_at_ms: "integer",
        status: "text not null",
        model: "text not null",
        background: "integer not null",
        previous_response_id: "text",
        size_bytes: "integer not null",
        record: "text not null",
        input_items: "text not null",
        request: "text",
        runs: "integer not null default 0",
      },
    },
    {
      name: "stored_response_items",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        item_id: "text not null",
        response_id: "text not null references stored_responses (id) on delete cascade",
      },
      constraints: ["primary key (workspace_id, item_id, response_id)"],
    },
    {
      name: "stored_response_events",
      columns: {
        response_id: "text not null references stored_responses (id) on delete cascade",
        last_sequence: "integer not null",
        events: "text not null",
      },
      constraints: ["primary key (response_id, last_sequence)"],
    },
    // The long texts come last, so that reading a job's state does not read them.
    {
      name: "document_jobs",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        idempotency_key: "text not null",
        body_hash: "text not null",
        created_at_ms: "integer not null",
        ended_at_ms: "integer",
        status: "text not null",
        provider: "text",
        pages: "integer",
        failure: "text",
        failure_told: "integer not null",
        body: "text",
        result: "text",
      },
      constraints: ["unique (workspace_id, idempotency_key)"],
    },
    {
      name: "conversations",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        person_id: "text not null",
        title: "text not null",
        starred: "integer not null",
        source: "text not null",
        model: "text",
        created_at_ms: "integer not null",
        updated_at_ms: "integer not null",
      },
    },
    {
      name: "conversation_messages",
      columns: {
        conversation_id: "text not null",
        position: "integer not null",
        role: "text not null",
        content: "text not null",
        model: "text",
        response_id: "text",
        created_at_ms: "integer not null",
      },
      constraints: ["primary key (conversation_id, position)"],
    },
    // The workspaces that keep no conversations.
    {
      name: "conversation_settings",
      columns: {
        workspace_id: "text not null primary key",
        keep: "integer not null",
        updated_at_ms: "integer not null",
      },
    },
  ],
  indexes: [
    "create index stored_responses_under_way on stored_responses (id) where status in ('queued', 'in_progress')",
    "create index stored_response_items_by_response on stored_response_items (response_id)",
    "create index document_jobs_under_way on document_jobs (id) where status in ('queued', 'running')",
    "create index document_jobs_by_end on document_jobs (ended_at_ms) where ended_at_ms is not null",
    "create index conversations_by_person on conversations (workspace_id, person_id, updated_at_ms)",
    "create index conversations_by_age on conversations (updated_at_ms)",
    "create index conversation_messages_by_age on conversation_messages (created_at_ms)",
    "create index conversation_messages_by_response on conversation_messages (response_id) where response_id is not null",
  ],
};
