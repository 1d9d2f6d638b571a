// Made by scripts/api-types.ts from the endpoint table; npm run dashboard:types writes it anew.
export type AdminUser = {
  "id": string;
  "object": "user";
  "name": string;
  "email": string;
  "operator": boolean;
  "blocked": boolean;
  "blocked_at": string | null;
  "created_at": string;
  "last_signed_in_at": string | null;
  "workspace_id": string | null;
};
export type AdminWorkspace = {
  "id": string;
  "object": "workspace";
  "name": string;
  "plan": "free" | "payg" | "go" | "pro" | "pro_plus" | "max" | "enterprise";
  "blocked": boolean;
  "owner_user_id": string | null;
  "organization_id": string | null;
  "created_at": string;
  "balance": number;
  "monthly_balance": number;
  "topup_balance": number;
  "used": number;
};
export type Conversation = {
  "id": string;
  "object": "conversation";
  "title": string;
  "starred": boolean;
  "source": "playground" | "responses";
  "model": string | null;
  "message_count": number;
  "created_at": string;
  "updated_at": string;
};
export type Credits = {
  "balance": number;
  "monthly_balance": number;
  "topup_balance": number;
  "used": number;
  "today_cost": number;
  "currency": "usd";
  "data": {
    "total_credits": number;
    "total_usage": number;
  };
};
export type CurrentSession = {
  "object": "session";
  "id": string;
  "expires_at": string;
  "user": User;
  "workspace": Workspace;
  "scopes": readonly (string)[];
};
export type Generation = {
  "id": string;
  "upstream_id": string | null;
  "trace_id": string;
  "request_id": string;
  "workspace_id": string;
  "created_at": string;
  "api_type": "completions" | "embeddings" | "rerank" | "decisions" | null;
  "surface": string;
  "model": string;
  "requested_model": string;
  "router": string | null;
  "provider_name": string | null;
  "provider_responses": readonly ({
    "provider_name": string;
    "status": number | null;
    "latency": number;
    "is_byok": boolean;
    "model_permaslug": string;
  })[];
  "upstream_model": string | null;
  "status": "completed" | "cut" | "cancelled" | "cached" | "failed";
  "streamed": boolean;
  "cancelled": boolean;
  "error": {
    "code": string;
    "status": number;
  } | null;
  "finish_reason": string | null;
  "native_finish_reason": string | null;
  "total_cost": number;
  "usage": number;
  "is_byok": boolean;
  "credential_source": string;
  "provider_key_id": string | null;
  "tokens_prompt": number;
  "tokens_completion": number;
  "native_tokens_prompt": number;
  "native_tokens_completion": number;
  "native_tokens_reasoning": number;
  "native_tokens_cached": number;
  "native_tokens_completion_images": number;
  "latency": number;
  "generation_time": number;
  "total_time": number;
  "moderation_latency": null;
  "cache_discount": null;
  "data_region": "global";
  "origin": string;
  "http_referer": string | null;
  "app_title": string | null;
  "app_id": null;
  "external_user": null;
  "user_agent": null;
  "preset_id": null;
  "service_tier": null;
  "web_search_engine": null;
  "num_fetches": null;
  "num_input_audio_prompt": null;
  "num_media_completion": null;
  "num_media_prompt": null;
  "num_search_results": null;
  "session_id": string | null;
  "trace": unknown;
  "routing": {
    "order": readonly (string)[];
    "left_out": readonly (string)[];
  } | null;
  "translation_loss": readonly ({
    "field": string;
    "reason": string;
  })[];
  "usage_estimated": boolean;
  "usage_clamped": boolean;
  "upstream_inference_cost": number | null;
  "attempts": readonly ({
    "provider": string;
    "model": string;
    "upstream_model": string;
    "status": number | null;
    "outcome": "served" | "failed" | "cancelled";
    "reason": string | null;
    "duration_ms": number;
  })[];
  "price": {
    "version": string | null;
    "usd_per_million": Readonly<Record<string, string>>;
    "lines": readonly ({
      "part": string;
      "quantity": number;
      "usd_per_million": number;
      "amount_usd": number;
    })[];
  } | null;
  "output_cap": number | null;
  "hold": {
    "reserved_usd": number;
    "charged_usd": number;
    "uncollected_usd": number;
  };
};
export type GenerationRow = {
  "id": string;
  "object": "generation";
  "created_at": string;
  "key_id": string;
  "key_name": string | null;
  "user_id": string | null;
  "surface": string;
  "model": string;
  "requested_model": string;
  "provider_name": string | null;
  "upstream_model": string | null;
  "status": "completed" | "cut" | "cancelled" | "cached" | "failed";
  "error": {
    "code": string;
    "status": number;
  } | null;
  "finish_reason": string | null;
  "streamed": boolean;
  "attempts": number;
  "fallback": boolean;
  "tokens_prompt": number;
  "tokens_completion": number;
  "tokens_cached": number;
  "tokens_reasoning": number;
  "total_cost": number;
  "credential_source": string;
  "is_byok": boolean;
  "app_title": string | null;
  "origin": string | null;
  "session_id": string | null;
  "latency": number;
  "total_time": number;
};
export type Hub = {
  "id": string;
  "object": "hub";
  "slug": string;
  "name": string;
  "description": string | null;
  "visibility": "private" | "workspace" | "public";
  "item_count": number;
  "owned": boolean;
  "created_by": string | null;
  "created_at": string;
  "updated_at": string;
};
export type LlmKey = {
  "id": string;
  "hash": string;
  "name": string;
  "label": string;
  "created_at": string;
  "updated_at": string | null;
  "expires_at": string | null;
  "disabled": boolean;
  "real_usage": number;
  "real_usage_daily": number;
  "real_usage_weekly": number;
  "real_usage_monthly": number;
  "real_usage_monthly_requests": number;
  "limit": number | null;
  "limit_remaining": number | null;
  "limit_reset": "daily" | "weekly" | "monthly" | null;
  "include_byok_in_limit": boolean;
  "rate_limit": number;
  "is_free_tier": boolean;
  "is_management_key": boolean;
  "creator_user_id": string;
  "last_used_at": string | null;
  "allowed_models": readonly (string)[] | null;
  "allowed_endpoints": readonly (string)[] | null;
  "tpm": number | null;
  "parent_key_id"?: string;
};
export type Model = {
  "id": string;
  "object": "model";
  "display_name": string;
  "name": string;
  "canonical_slug": string;
  "provider": string;
  "owned_by": string;
  "providers": readonly (string)[];
  "category": "text" | "image" | "audio" | "embedding";
  "context_length": number;
  "pricing": {
    "prompt": string;
    "completion": string;
    "input_per_1m": number;
    "output_per_1m": number;
    "billing"?: "byok" | "member";
    "list_pricing"?: {
      "input_per_1m": number;
      "output_per_1m": number;
    };
    "lowest"?: {
      "input_per_1m": number;
      "output_per_1m": number;
    };
  };
  "capabilities": readonly (string)[];
  "architecture": {
    "modality": string;
    "input_modalities": readonly ("text" | "image" | "file" | "audio")[];
    "output_modalities": readonly ("text" | "embeddings" | "rerank" | "decisions")[];
    "instruct_type": null;
  };
  "links": {
    "details": string;
    "metrics": string;
  };
  "reasoning"?: {
    "levels": readonly (string)[];
    "default"?: string;
    "supported_efforts": readonly (string)[];
    "default_effort": string | null;
    "mandatory": boolean;
  };
  "supported_parameters": readonly (string)[];
  "default_parameters": null;
  "per_request_limits": null;
  "supported_voices": null;
  "top_provider": {
    "context_length": number;
    "max_completion_tokens": number | null;
    "is_moderated": false;
  };
  "per_upstream": readonly (ModelRoute)[];
  "members"?: readonly (string)[];
  "description"?: string;
  "created": number;
  "coming_soon"?: true;
};
export type ModelRoute = {
  "provider": string;
  "reasoning"?: {
    "levels": readonly (string)[];
    "default"?: string;
  };
  "features": {
    "reasoning"?: boolean;
  };
  "supported_parameters"?: readonly (string)[];
  "context": {
    "context_length"?: number;
    "max_completion_tokens"?: number;
  };
  "pricing"?: Readonly<Record<string, number>>;
  "quantization"?: string;
  "data_policy": {
    "zdr"?: boolean;
    "data_collection"?: "allow" | "deny";
    "distillable_text"?: boolean;
  };
  "billing"?: "byok";
};
export type Preset = {
  "id": string;
  "object": "preset";
  "slug": string;
  "name": string;
  "description": string | null;
  "config": {
    "model"?: string | null;
    "models"?: readonly (string)[] | null;
    "system"?: string | null;
    "temperature"?: number | null;
    "max_tokens"?: number | null;
    "max_completion_tokens"?: number | null;
    "top_p"?: number | null;
    "top_k"?: number | null;
    "frequency_penalty"?: number | null;
    "presence_penalty"?: number | null;
    "repetition_penalty"?: number | null;
    "stop"?: string | readonly (string)[] | null;
    "seed"?: number | null;
    "response_format"?: {
      "type": string;
    } | null;
    "tools"?: readonly (Readonly<Record<string, unknown>>)[] | null;
    "tool_choice"?: string | Readonly<Record<string, unknown>> | null;
    "provider"?: {
      "order"?: readonly (string)[] | null;
      "allow_fallbacks"?: boolean | null;
      "require_parameters"?: boolean | null;
      "require_params"?: readonly (string)[] | null;
      "min_context"?: number | null;
      "data_collection"?: "allow" | "deny" | null;
      "zdr"?: boolean | null;
      "enforce_distillable_text"?: boolean | null;
      "only"?: readonly (string)[] | null;
      "ignore"?: readonly (string)[] | null;
      "quantizations"?: readonly (string)[] | null;
      "sort"?: "price" | "throughput" | "latency" | "cost" | "ttft" | "tps" | "exacto" | {
        "by": "price" | "throughput" | "latency" | "cost" | "ttft" | "tps";
        "partition"?: "model" | "none" | null;
      } | null;
      "preferred_min_throughput"?: number | {
        "p50"?: number;
        "p75"?: number;
        "p90"?: number;
        "p99"?: number;
      } | null;
      "preferred_max_latency"?: number | {
        "p50"?: number;
        "p75"?: number;
        "p90"?: number;
        "p99"?: number;
      } | null;
      "max_price"?: {
        "prompt"?: string | number | null;
        "completion"?: string | number | null;
      } | null;
    } | null;
    "reasoning"?: {
      "effort"?: string;
      "max_tokens"?: number;
      "exclude"?: boolean;
      "enabled"?: boolean;
    } | null;
    "stream_options"?: {
      "include_usage"?: boolean;
    } | null;
    "require_params"?: readonly (string)[] | null;
    "min_context"?: number | null;
  };
  "version": number;
  "created_at": string;
  "updated_at": string;
  "last_used_at": string | null;
};
export type PrivacySettings = {
  "zdr": boolean;
  "blocked_providers": readonly (string)[];
};
export type Prompt = {
  "object": "prompt";
  "title": string;
  "category": string | null;
  "platforms": readonly (string)[];
  "recommended_agents": readonly (string)[];
  "recommended_model": string | null;
  "status": "pending_review" | "approved" | "rejected" | null;
  "review": {
    "note": string | null;
    "reviewed_at": string;
  } | null;
  "id": string;
  "description": string | null;
  "tags": readonly (string)[];
  "body"?: string | null;
  "slug": string | null;
  "hub": string | null;
  "visibility": "private" | "workspace" | "public";
  "version": number;
  "published_version": number | null;
  "stars": number;
  "starred": boolean;
  "forks": number;
  "forked_from": string | null;
  "created_by": string | null;
  "created_at": string;
  "updated_at": string;
};
export type Skill = {
  "object": "skill";
  "name": string;
  "source_ref": string | null;
  "id": string;
  "description": string | null;
  "tags": readonly (string)[];
  "body"?: string | null;
  "slug": string | null;
  "hub": string | null;
  "visibility": "private" | "workspace" | "public";
  "version": number;
  "published_version": number | null;
  "stars": number;
  "starred": boolean;
  "forks": number;
  "forked_from": string | null;
  "created_by": string | null;
  "created_at": string;
  "updated_at": string;
};
export type User = {
  "id": string;
  "object": "user";
  "name": string;
  "email": string;
  "email_verified": boolean;
  "operator": boolean;
};
export type Workspace = {
  "id": string;
  "object": "workspace";
  "name": string;
  "plan": "free" | "payg" | "go" | "pro" | "pro_plus" | "max" | "enterprise";
  "role": "owner" | "admin" | "member";
  "organization_id": string | null;
  "created_at": string;
};

/** Answers by operation. */
export interface Answers {
  "GET /session": CurrentSession;
  "GET /workspaces": {
    "object": "list";
    "data": readonly (Workspace)[];
  };
  "GET /models": {
    "object": "list";
    "data": readonly (Model)[];
    "presets"?: readonly (Preset)[];
    "total_count": number;
    "links": {
      "next": string | null;
    };
  };
  "GET /keys": {
    "object": "list";
    "data": readonly (LlmKey)[];
    "has_more"?: boolean;
    "next_cursor"?: string | null;
  };
  "GET /credits": Credits;
  "GET /analytics/generations": {
    "object": "list";
    "data": readonly (GenerationRow)[];
    "has_more": boolean;
    "next_cursor": string | null;
  };
  "GET /analytics/generations/histogram": {
    "object": "histogram";
    "from": string;
    "to": string;
    "bucket_seconds": number;
    "data": readonly ({
      "bucket": string;
      "requests": number;
      "errors": number;
      "tokens": number;
      "cost": number;
    })[];
    "totals": {
      "requests": number;
      "errors": number;
      "tokens": number;
      "cost": number;
    };
    "complete": boolean;
    "counted_from": string | null;
  };
  "GET /analytics/errors": {
    "object": "list";
    "from": string;
    "to": string;
    "data": readonly ({
      "status": "cut" | "cancelled" | "failed";
      "code": string | null;
      "http_status": number | null;
      "provider": string | null;
      "model": string;
      "requests": number;
      "last_at": string;
    })[];
    "refused": readonly ({
      "code": string;
      "http_status": number;
      "key_id": string;
      "key_name": string | null;
      "requests": number;
    })[];
  };
  "GET /analytics/usage": {
    "object": "list";
    "from": string;
    "to": string;
    "interval": "hour" | "day";
    "data": readonly ({
      "requests": number;
      "errors": number;
      "tokens": number;
      "cost": number;
      "bucket": string;
    })[];
  };
  "GET /generation/{id}/explain": {
    "id": string;
    "object": "charge_explanation";
    "explanation": readonly (string)[];
    "charged_usd": number;
    "lines": readonly ({
      "part": string;
      "quantity": number;
      "usd_per_million": number;
      "amount_usd": number;
    })[];
    "sources": {
      "monthly_usd": number;
      "topup_usd": number;
      "uncollected_usd": number;
    };
    "transfers": readonly ({
      "id": string;
      "from": string;
      "amount_usd": number;
      "at": string;
    })[];
    "generation": Generation;
  };
  "GET /health": {
    "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
    "description": string;
    "version": string;
    "checked_at": string;
    "components": {
      "api": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      };
      "providers": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      };
      "smoke_tests": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      } | null;
      "workflows": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      } | null;
      "routing": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      } | null;
      "postgres": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      };
      "clickhouse": {
        "status": "healthy" | "degraded" | "partial" | "down" | "no_signal";
        "description": string;
        "note": string | null;
        "data": Readonly<Record<string, unknown>>;
      };
    };
    "events": readonly ({
      "at": string;
      "upstream_id": string;
      "from": string;
      "to": string;
      "message"?: string;
    })[];
  };
  "GET /health/history": {
    "object": "health.history";
    "days": number;
    "providers": readonly ({
      "id": string;
      "uptime": number | null;
      "buckets": readonly ({
        "date": string;
        "attempts": number;
        "failures": number;
        "uptime": number | null;
      })[];
    })[];
    "incidents": readonly ({
      "upstream_id": string;
      "status": "degraded" | "down";
      "started_at": string;
      "ended_at": string | null;
      "messages": readonly (string)[];
    })[];
  };
  "POST /session/playground-key": {
    "object": "playground_key";
    "key": string;
    "key_id": string;
    "connection_id": string;
    "expires_at": string;
  };
  "GET /conversations": {
    "object": "list";
    "data": readonly (Conversation)[];
    "has_more": boolean;
    "next_cursor": string | null;
  };
  "GET /conversations/settings": {
    "object": "conversation_settings";
    "keep": boolean;
  };
  "GET /presets": {
    "object": "list";
    "data": readonly (Preset)[];
  };
  "GET /connections": {
    "object": "list";
    "data": readonly ({
      "id": string;
      "object": "connection";
      "client": {
        "id": string | null;
        "name": string;
      };
      "origin": "device" | "oauth" | "key" | "playground";
      "scopes": readonly (string)[];
      "bundle": "read_only" | "standard" | null;
      "resource": string | null;
      "workspace_id": string;
      "user_id": string;
      "key_id": string;
      "limit": number | null;
      "limit_reset": "daily" | "weekly" | "monthly" | null;
      "limit_remaining": number | null;
      "usage": number;
      "allowed_models": readonly (string)[] | null;
      "created_at": string;
      "created_from": {
        "address": string;
        "user_agent": string;
      };
      "refreshed_at": string | null;
      "last_used_at": string | null;
      "expires_at": string | null;
    })[];
  };
  "GET /prompts": {
    "object": "list";
    "data": readonly (Prompt)[];
    "has_more": boolean;
    "next_cursor": string | null;
  };
  "GET /skills": {
    "object": "list";
    "data": readonly (Skill)[];
    "has_more": boolean;
    "next_cursor": string | null;
  };
  "GET /hubs": {
    "object": "list";
    "data": readonly (Hub)[];
    "has_more": boolean;
    "next_cursor": string | null;
  };
  "GET /admin/overview": {
    "object": "overview";
    "version": string;
    "status": string;
    "users": {
      "total": number;
      "operators": number;
      "blocked": number;
    };
    "workspaces": {
      "total": number;
      "organizations": number;
      "blocked": number;
    };
    "upstreams": {
      "routed": number;
      "in_trouble": number;
    };
    "days": number;
    "usage": {
      "requests": number;
      "errors": number;
      "prompt_tokens": number;
      "completion_tokens": number;
      "cost": number;
      "attempts": number;
      "failures": number;
    };
    "today": {
      "requests": number;
      "errors": number;
      "prompt_tokens": number;
      "completion_tokens": number;
      "cost": number;
      "attempts": number;
      "failures": number;
    };
    "uncollected": {
      "requests": number;
      "cost": number;
      "data": readonly ({
        "workspace_id": string;
        "model": string;
        "requests": number;
        "cost": number;
      })[];
    };
  };
  "GET /admin/workspaces": {
    "object": "list";
    "data": readonly (AdminWorkspace)[];
    "total": number;
    "has_more": boolean;
  };
  "GET /admin/users": {
    "object": "list";
    "data": readonly (AdminUser)[];
    "total": number;
    "has_more": boolean;
  };
  "GET /admin/plans": {
    "object": "list";
    "data": readonly ({
      "id": "free" | "payg" | "go" | "pro" | "pro_plus" | "max" | "enterprise";
      "object": "plan";
      "tier": string;
      "requests_per_minute": number;
      "five_hour_requests": number | null;
      "monthly_credits": number;
      "workspaces": number;
    })[];
  };
  "GET /admin/upstreams": {
    "object": "list";
    "data": readonly ({
      "id": string;
      "object": "upstream";
      "name": string;
      "routed": boolean;
      "states": readonly (string)[];
      "quarantined_until": string | null;
      "failures_in_row": number;
      "last_success_at": string | null;
      "last_failure_at": string | null;
      "last_hour": {
        "requests": number;
        "errors": number;
        "latency_ms": number | null;
        "prompt_tokens": number;
        "cached_tokens": number;
      };
      "budget": {
        "limit": number;
        "spent": number;
      } | null;
      "smoke_test": {
        "at": string;
        "outcome": string;
        "latency_ms": number | null;
        "message": string | null;
      } | null;
    })[];
  };
  "GET /admin/errors": {
    "object": "errors_overview";
    "from": string;
    "to": string;
    "requests": number;
    "errors": number;
    "error_rate": number;
    "providers": readonly ({
      "id": string;
      "requests": number;
      "errors": number;
      "attempts": number;
      "failures": number;
    })[];
    "models": readonly ({
      "id": string;
      "requests": number;
      "errors": number;
      "attempts": number;
      "failures": number;
    })[];
    "workspaces": readonly ({
      "id": string;
      "requests": number;
      "errors": number;
    })[];
    "upstreams": readonly ({
      "id": string;
      "states": readonly (string)[];
      "failures_in_row": number;
      "last_failure_at": string | null;
    })[];
  };
  "GET /admin/settings": {
    "object": "list";
    "version": string;
    "data": readonly ({
      "key": string;
      "value": string;
      "source": "environment" | "file" | "default";
      "variable": string | null;
    })[];
  };
  "GET /security/privacy": PrivacySettings;
}
