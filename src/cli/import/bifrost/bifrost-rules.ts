import type { AliasCondition } from "../../../platform/kernel/models/model-alias.ts";
import { canBeAlias, type ImportPlan } from "../import-plan.ts";
import type { SourceNode } from "../source-node.ts";

/** What an expression of a rule demands: a model's name, and request headers. */
interface Demands {
  model: string;
  header: Readonly<Record<string, string>>;
}

/**
 * Reads an expression that joins comparisons of the model and of headers by `&&`; undefined for any
 * other one.
 */
function demandsOf(expression: string): Demands | undefined {
  let model: string | undefined;
  const header: Record<string, string> = {};
  for (const part of expression.split("&&")) {
    const plain = part.trim().replace(/^\((.*)\)$/, "$1");
    const ofModel = /^model\s*==\s*(["'])(.+?)\1$/.exec(plain);
    const ofHeader = /^headers\[(["'])(.+?)\1\]\s*==\s*(["'])(.*?)\3$/.exec(plain);
    if (ofModel?.[2] !== undefined && model === undefined) model = ofModel[2];
    else if (ofHeader?.[2] !== undefined) header[ofHeader[2].toLowerCase()] = ofHeader[4] ?? "";
    else return undefined;
  }
  return model === undefined ? undefined : { model, header };
}

/** An entry of a name, as the configuration writes it. */
interface Entry {
  model: string | string[];
  weight?: number;
  when?: AliasCondition;
}

/** The dependencies of reading rules. */
interface RuleParts {
  plan: ImportPlan;
  idOf(provider: string, model: string): string;
}

/**
 * Reads routing rules whose expression names one model, and headers if any: each becomes entries of
 * that name. Others are reported.
 */
export function importRules(rules: SourceNode | undefined, parts: RuleParts): void {
  const entries = new Map<string, Entry[]>();
  const inOrder = (rules?.items() ?? [])
    .map((rule) => ({ rule, priority: rule.get("priority")?.number() ?? 0 }))
    .toSorted((one, other) => one.priority - other.priority);
  for (const { rule } of inOrder) {
    for (const fact of ["id", "name", "description", "query", "scope_id"]) rule.get(fact)?.whole();
    const isEnabled = rule.get("enabled") === undefined || rule.get("enabled")?.isTrue() === true;
    const scope = rule.get("scope")?.text() ?? "global";
    const demands = demandsOf(rule.get("cel_expression")?.text() ?? "");
    const reason = !isEnabled
      ? "is disabled"
      : scope !== "global"
        ? `holds for one ${scope}: write an entry of aliases with when.key`
        : demands === undefined
          ? "only rules for one model's name, with headers, have a counterpart: an entry of aliases"
          : canBeAlias(demands.model)
            ? undefined
            : `${demands.model} has an owner, so it is a model and no name`;
    if (reason !== undefined || demands === undefined) {
      rule.report("left_out", reason ?? "has no counterpart");
      continue;
    }
    const added = entriesOf(rule, demands, parts);
    if (added.length === 0) rule.report("left_out", "names no model that it goes to");
    else {
      entries.set(demands.model, [...(entries.get(demands.model) ?? []), ...added]);
      rule.report("imported", `${demands.model} is an entry of aliases`);
    }
  }
  for (const [name, list] of entries) {
    // Requests that meet no rule ask the model itself.
    const isOpen = list.some(({ when }) => when === undefined);
    const id = parts.plan.modelId(name, "openai");
    const own = isOpen || !parts.plan.knows(id) ? [] : [{ model: id }];
    parts.plan.aliases.set(name, [...list, ...own]);
  }
}

function entriesOf(rule: SourceNode, { model, header }: Demands, { idOf }: RuleParts): Entry[] {
  const fallbacks = (rule.get("fallbacks")?.texts() ?? []).flatMap((text) => {
    const [, provider, name] = /^([^/]+)\/(.+)$/.exec(text) ?? [];
    return provider === undefined || name === undefined ? [] : [idOf(provider, name)];
  });
  const targets = rule.get("targets")?.items() ?? [];
  const hasHeader = Object.keys(header).length > 0;
  return targets.flatMap((target) => {
    const provider = target.get("provider")?.text();
    const weight = target.get("weight")?.number();
    target
      .get("provider_key_name")
      ?.report("left_out", "a provider's entries are chosen by price and health");
    if (provider === undefined) {
      target.report("left_out", "names no provider");
      return [];
    }
    const id = idOf(provider, target.get("model")?.text() ?? model);
    return [
      {
        model: fallbacks.length === 0 ? id : [id, ...fallbacks],
        ...(targets.length > 1 && weight !== undefined ? { weight } : {}),
        ...(hasHeader ? { when: { header } } : {}),
      },
    ];
  });
}
