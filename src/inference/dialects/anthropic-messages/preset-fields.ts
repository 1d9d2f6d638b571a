import {
  outputBound,
  type PresetSettings,
} from "../../../platform/kernel/models/preset-settings.ts";
import {
  chosenFunction,
  functionOf,
  presetEffort,
  presetTools,
  unlessSet,
  type PresetFields,
} from "../shared/preset-fields.ts";
import { isAbsent, asObject } from "../shared/wire-fields.ts";
import { budgetTokensMin, budgetWithin } from "../shared/reasoning-rules.ts";
import { continuesThread } from "./threads.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/**
 * The highest temperature of Messages, which is the middle of chat's scale; a preset serves both.
 */
const temperatureMax = 1;

function tool(given: JsonFields): JsonFields {
  const called = functionOf(given);
  if (called === undefined) return given;
  const { name, description, parameters, strict } = called;
  return {
    name,
    ...(isAbsent(description) ? {} : { description }),
    input_schema: parameters ?? { type: "object", properties: {} },
    ...(isAbsent(strict) ? {} : { strict }),
  };
}

const words: Readonly<Record<string, string>> = { auto: "auto", none: "none", required: "any" };

function toolChoice(choice: PresetSettings["tool_choice"]): JsonFields | undefined {
  if (choice === undefined) return undefined;
  if (typeof choice === "string") return { type: words[choice] ?? choice };
  const name = chosenFunction(choice);
  return name === undefined ? choice : { type: "tool", name };
}

/**
 * Returns the reasoning fields: `thinking` turns it on, and `output_config` carries its effort and
 * the answer's schema.
 */
function thinking(config: PresetSettings, body: JsonFields): JsonFields {
  const own = asObject(body["output_config"]) ?? {};
  const wish =
    isAbsent(body["thinking"]) && isAbsent(own["effort"]) ? presetEffort(config) : undefined;
  const schema =
    config.response_format?.["type"] === "json_schema"
      ? asObject(config.response_format["json_schema"])?.["schema"]
      : undefined;
  const output = {
    ...(wish === undefined || wish.off || wish.effort === undefined ? {} : { effort: wish.effort }),
    ...(schema === undefined || !isAbsent(own["format"])
      ? {}
      : { format: { type: "json_schema", schema } }),
  };
  const budget = wish === undefined || wish.off ? undefined : fittedBudget(config, body, wish);
  return {
    ...(wish?.off ? { thinking: { type: "disabled" } } : {}),
    ...(budget === undefined ? {} : { thinking: { type: "enabled", budget_tokens: budget } }),
    ...(Object.keys(output).length === 0 ? {} : { output_config: { ...own, ...output } }),
  };
}

/**
 * Returns a preset's reasoning budget below the output cap, which Anthropic requires; undefined
 * where the cap leaves no room for reasoning.
 */
function fittedBudget(
  config: PresetSettings,
  { max_tokens: asked }: JsonFields,
  { budgetTokens: budget }: { budgetTokens?: number | undefined },
): number | undefined {
  const cap = asked ?? outputBound(config);
  if (budget === undefined || typeof cap !== "number" || budget < cap) return budget;
  const fitted = budgetWithin(cap, budget);
  return fitted < budgetTokensMin ? undefined : fitted;
}

const isSystemMessage = (message: unknown): boolean => asObject(message)?.["role"] === "system";

const saysNothing = (system: unknown): boolean =>
  isAbsent(system) || system === "" || (Array.isArray(system) && system.length === 0);

/** Settings that Messages has no field for. */
const settingsWithoutField = [
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "seed",
] as const;

/** Presets in Anthropic's dialect, which has no penalties, seed or stream options. */
export const presetFields: PresetFields = {
  settings(config, body) {
    const { tools, tool_choice } = continuesThread(body) ? {} : presetTools(config, body);
    return {
      ...unlessSet(
        {
          max_tokens: outputBound(config),
          temperature:
            config.temperature === undefined
              ? undefined
              : Math.min(config.temperature, temperatureMax),
          top_p: config.top_p,
          top_k: config.top_k,
          stop_sequences: typeof config.stop === "string" ? [config.stop] : config.stop,
          tools: tools?.map(tool),
          tool_choice: toolChoice(tool_choice),
        },
        body,
      ),
      ...thinking(config, body),
    };
  },
  lost: ({ response_format: format, reasoning, ...config }) => [
    ...settingsWithoutField.filter((name) => config[name] !== undefined),
    ...(format === undefined || format["type"] === "text" || format["type"] === "json_schema"
      ? []
      : ["response_format"]),
    ...(reasoning?.exclude === true ? ["reasoning.exclude"] : []),
  ],
  // A thread keeps the system prompt and the tools that it was created with, and takes no others.
  hasSystem: ({ system, messages, thread }) =>
    !saysNothing(system) ||
    (Array.isArray(messages) && messages.some(isSystemMessage)) ||
    continuesThread({ thread }),
  systemMember: (system) => ({ member: "system", text: JSON.stringify(system) }),
};
