import {
  outputBound,
  type PresetSettings,
} from "../../../platform/kernel/models/preset-settings.ts";
import {
  chosenFunction,
  functionOf,
  presetEffort,
  presetTools,
  saysEffort,
  unlessSet,
  type PresetFields,
} from "../shared/preset-fields.ts";
import { isAbsent, asObject } from "../shared/wire-fields.ts";

type JsonFields = Readonly<Record<string, unknown>>;

const tool = (given: JsonFields): JsonFields => {
  const called = functionOf(given);
  return called === undefined ? given : { type: "function", ...called };
};

function toolChoice(choice: PresetSettings["tool_choice"]): PresetSettings["tool_choice"] {
  const name = typeof choice === "object" ? chosenFunction(choice) : undefined;
  return name === undefined ? choice : { type: "function", name };
}

/** Returns the text settings: the response format is in `text`, flat where chat nests it. */
function text({ response_format: format }: PresetSettings, body: JsonFields): JsonFields {
  const own = asObject(body["text"]) ?? {};
  if (format === undefined || !isAbsent(own["format"])) return {};
  const schema = format["type"] === "json_schema" ? asObject(format["json_schema"]) : undefined;
  return {
    text: { ...own, format: schema === undefined ? format : { type: "json_schema", ...schema } },
  };
}

/**
 * Returns the reasoning settings. Reasoning is turned off by `enabled: false` here (contract:
 * reasoning rule 1).
 */
function reasoning(config: PresetSettings, body: JsonFields): JsonFields {
  const own = asObject(body["reasoning"]) ?? {};
  const wish = saysEffort(own) ? undefined : presetEffort(config);
  const exclude = isAbsent(own["exclude"]) ? config.reasoning?.exclude : undefined;
  const offered = {
    ...(wish?.off ? { enabled: false } : {}),
    ...(wish === undefined || wish.off || wish.effort === undefined ? {} : { effort: wish.effort }),
    ...(wish === undefined || wish.off || wish.budgetTokens === undefined
      ? {}
      : { max_tokens: wish.budgetTokens }),
    ...(exclude === undefined ? {} : { exclude }),
  };
  return Object.keys(offered).length === 0 ? {} : { reasoning: { ...own, ...offered } };
}

const isInstruction = (item: unknown): boolean =>
  ["system", "developer"].includes(String(asObject(item)?.["role"]));

/** Presets in the dialect of Responses, which has no stop sequences and no `include_usage`. */
export const presetFields: PresetFields = {
  settings(config, body) {
    const { tools, tool_choice } = presetTools(config, body);
    return {
      ...unlessSet(
        {
          max_output_tokens: outputBound(config),
          temperature: config.temperature,
          top_p: config.top_p,
          top_k: config.top_k,
          frequency_penalty: config.frequency_penalty,
          presence_penalty: config.presence_penalty,
          repetition_penalty: config.repetition_penalty,
          seed: config.seed,
          tools: tools?.map(tool),
          tool_choice: toolChoice(tool_choice),
        },
        body,
      ),
      ...text(config, body),
      ...reasoning(config, body),
    };
  },
  lost: ({ stop }) => (stop === undefined ? [] : ["stop"]),
  hasSystem: ({ instructions, input }) =>
    (!isAbsent(instructions) && instructions !== "") ||
    (Array.isArray(input) && input.some(isInstruction)),
  systemMember: (system) => ({ member: "instructions", text: JSON.stringify(system) }),
};
