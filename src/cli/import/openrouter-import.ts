import { outputCapNames } from "../../platform/kernel/models/preset-settings.ts";
import type { ImportPlan } from "./import-plan.ts";
import type { SourceDocument } from "./source-document.ts";
import type { SourceNode } from "./source-node.ts";

/** Members of records that a report does not list. */
const facts = [
  ...["hash", "label", "usage", "usage_daily", "usage_weekly", "usage_monthly", "byok_usage"],
  ...["byok_usage_daily", "byok_usage_weekly", "byok_usage_monthly", "limit_remaining"],
  ...[
    "created_at",
    "updated_at",
    "creator_user_id",
    "workspace_id",
    "external_user",
    "last_used_at",
  ],
  ...["id", "preset_id", "creator_id", "version", "designated_version_id", "status", "visibility"],
];

/** Fields of presets that have the same names here. */
const sameFields = [
  ...outputCapNames,
  ...["model", "models", "temperature", "top_p", "top_k"],
  ...["frequency_penalty", "presence_penalty", "repetition_penalty", "stop", "seed"],
  ...["response_format", "tools", "tool_choice", "reasoning"],
];
/** Routing preferences that mean the same here, with any providers. */
const samePreferences = [
  ...["allow_fallbacks", "require_parameters", "data_collection", "zdr", "sort", "max_price"],
];

/** Reads keys and presets of OpenRouter, as `GET /keys` and `GET /presets` return them. */
export class OpenRouterImport {
  constructor(private readonly plan: ImportPlan) {}

  /** Fills the plan. OpenRouter itself is the provider with which its ids continue to work. */
  run(sources: readonly SourceDocument[]): void {
    this.plan.provider({ vendor: "openrouter", apiKey: "${OPENROUTER_API_KEY}" });
    for (const source of sources) {
      for (const record of recordsOf(source)) {
        for (const fact of facts) record.get(fact)?.whole();
        if (record.get("slug") === undefined) this.addKey(record);
        else this.addPreset(record);
      }
      source.finish(() => "has no counterpart");
    }
  }

  private addKey(record: SourceNode): void {
    const name = record.get("name")?.text() ?? "openrouter";
    const limit = record.get("limit")?.number();
    const reset = record.get("limit_reset")?.text();
    const expires = record.get("expires_at")?.text();
    this.plan.keys.push({
      name,
      ...(limit === undefined
        ? {}
        : { limit, ...(reset === undefined ? {} : { limit_reset: reset }) }),
      ...(record.get("disabled")?.isTrue() ? { disabled: true } : {}),
      ...(record.get("include_byok_in_limit")?.isTrue() ? { include_byok_in_limit: true } : {}),
      ...(expires === undefined ? {} : { expires_at: new Date(expires).toISOString() }),
    });
    if (limit !== undefined && reset === undefined)
      record.get("limit")?.report("changed", "is counted over 30 days, not for ever");
    else if (reset !== undefined)
      record
        .get("limit_reset")
        ?.report(
          "changed",
          `the last ${reset === "daily" ? "24 hours" : reset === "weekly" ? "7 days" : "30 days"}, not since midnight UTC`,
        );
    record.report("imported", `the key ${name}, with a new secret`);
  }

  private addPreset(record: SourceNode): void {
    const slug = record.get("slug")?.text() ?? "preset";
    const name = record.get("name")?.text() ?? slug;
    const description = record.get("description")?.text();
    const version = record.get("designated_version") ?? record;
    for (const fact of facts) version.get(fact)?.whole();
    const given = version.get("config");
    const system = version.get("system_prompt")?.text() ?? given?.get("system")?.text();
    const config: Record<string, unknown> = {
      ...Object.fromEntries(
        sameFields.flatMap((key) => {
          const part = given?.get(key);
          return part === undefined ? [] : [[key, part.whole()] as const];
        }),
      ),
      ...(system === undefined ? {} : { system }),
      ...this.preferencesOf(given?.get("provider")),
    };
    const own = this.plan.presetSlug(slug);
    this.plan.presets.push({
      slug: own,
      name,
      ...(description === undefined ? {} : { description }),
      config,
    });
    record.report("imported", `the preset ${slug} is @preset/${own}`);
  }

  private preferencesOf(preferences: SourceNode | undefined): { provider?: object } {
    for (const key of ["order", "only", "ignore", "quantizations"])
      preferences
        ?.get(key)
        ?.report("left_out", "names providers behind OpenRouter, which chooses among them itself");
    const same = samePreferences.flatMap((key) => {
      const part = preferences?.get(key);
      return part === undefined ? [] : [[key, part.whole()] as const];
    });
    return same.length === 0 ? {} : { provider: Object.fromEntries(same) };
  }
}

/** Returns the records of a file: a list, an answer with `data`, or several answers by name. */
function recordsOf({ root }: SourceDocument): SourceNode[] {
  for (const fact of ["total_count", "object"]) root.get(fact)?.whole();
  if (root.isList()) return root.items();
  return ["data", "keys", "presets"].flatMap((key) => {
    const part = root.get(key);
    if (part === undefined) return [];
    if (part.isList()) return part.items();
    const inner = part.get("data");
    return inner === undefined ? [part] : inner.items();
  });
}
