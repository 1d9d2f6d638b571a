import type { SchemaPart } from "./schema-part.ts";

/** Generation records, counters of usage, and the health of providers. */
export const insightsSchema: SchemaPart = {
  tables: [
    {
      name: "generations",
      clustered: true,
      columns: {
        id: "text not null",
        created_at_ms: "integer not null",
        workspace_id: "text not null",
        key_id: "text not null",
        surface: "text not null",
        requested_model: "text not null",
        model: "text not null",
        provider: "text not null",
        upstream_model: "text not null",
        upstream_id: "text",
        status: "text not null",
        finish_reason: "text",
        streamed: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cost_nano: "integer not null",
        latency_ms: "integer not null",
        first_token_ms: "integer",
        detail: "text not null",
      },
      constraints: ["primary key (workspace_id, id)"],
    },
    {
      name: "usage_hours",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        hour: "integer not null",
        key_id: "text not null",
        model: "text not null",
        provider: "text not null",
        requests: "integer not null",
        errors: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cached_tokens: "integer not null",
        reasoning_tokens: "integer not null",
        cost_nano: "integer not null",
      },
      constraints: ["primary key (workspace_id, hour, key_id, model, provider)"],
    },
    {
      name: "usage_days",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        day: "integer not null",
        key_id: "text not null",
        model: "text not null",
        provider: "text not null",
        requests: "integer not null",
        errors: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cached_tokens: "integer not null",
        reasoning_tokens: "integer not null",
        cost_nano: "integer not null",
      },
      constraints: ["primary key (workspace_id, day, key_id, model, provider)"],
    },
    // Without the provider: enough for most queries, in few rows where providers share the models.
    {
      name: "usage_key_days",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        day: "integer not null",
        key_id: "text not null",
        model: "text not null",
        requests: "integer not null",
        errors: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cached_tokens: "integer not null",
        reasoning_tokens: "integer not null",
        cost_nano: "integer not null",
      },
      constraints: ["primary key (workspace_id, day, key_id, model)"],
    },
    {
      name: "network_hours",
      clustered: true,
      columns: {
        hour: "integer not null primary key",
        requests: "integer not null",
        tokens: "integer not null",
      },
    },
    {
      name: "network_days",
      clustered: true,
      columns: {
        day: "integer not null",
        model: "text not null",
        provider: "text not null",
        requests: "integer not null",
        errors: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cached_tokens: "integer not null",
        reasoning_tokens: "integer not null",
        cost_nano: "integer not null",
        attempts: "integer not null",
        failures: "integer not null",
      },
      constraints: ["primary key (day, model, provider)"],
    },
    // Requests that were refused before a provider was called.
    {
      name: "refused_hours",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        hour: "integer not null",
        key_id: "text not null",
        code: "text not null",
        requests: "integer not null",
      },
      constraints: ["primary key (workspace_id, hour, key_id, code)"],
    },
    {
      name: "health_events",
      columns: {
        id: "text not null primary key",
        at_ms: "integer not null",
        upstream_id: "text not null",
        from_status: "text not null",
        to_status: "text not null",
        message: "text",
      },
    },
    // The last smoke test of each provider.
    {
      name: "smoke_results",
      columns: {
        provider_id: "text not null primary key",
        at_ms: "integer not null",
        outcome: "text not null",
        latency_ms: "integer",
        message: "text",
      },
    },
    // Generation records that wait for the archive, folded from what commits append. `batch` names
    // the insert that a record belongs to once that is decided.
    {
      name: "archive_outbox",
      clustered: true,
      columns: {
        generation_id: "text not null",
        workspace_id: "text not null",
        records: "integer not null",
        batch: "text",
      },
      constraints: ["primary key (generation_id, workspace_id)"],
    },
  ],
  indexes: [
    // The few records that did not complete, so that completed ones cost nothing. The index
    // includes their statuses, so that a list of failed ones reads no other record.
    "create index generations_unfinished on generations (workspace_id, id, status) where status <> 'completed'",
    "create index archive_outbox_by_batch on archive_outbox (batch, generation_id) where batch is not null",
  ],
};
