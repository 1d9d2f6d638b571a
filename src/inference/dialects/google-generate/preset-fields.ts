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

type JsonFields = Readonly<Record<string, unknown>>;

/** Returns an entry of `tools` for chat's tools; tools that are no functions stay as they are. */
function toolEntries(tools: readonly JsonFields[]): JsonFields[] {
  const functions = tools.flatMap((tool) => {
    const called = functionOf(tool);
    if (called === undefined) return [];
    const { name, description, parameters } = called;
    return [
      {
        name,
        ...(isAbsent(description) ? {} : { description }),
        ...(isAbsent(parameters) ? {} : { parametersJsonSchema: parameters }),
      },
    ];
  });
  const others = tools.filter((tool) => functionOf(tool) === undefined);
  return [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others];
}

const modes: Readonly<Record<string, string>> = { auto: "AUTO", none: "NONE", required: "ANY" };

function toolConfig(choice: NonNullable<PresetSettings["tool_choice"]>): JsonFields {
  if (typeof choice === "string")
    return { functionCallingConfig: { mode: modes[choice] ?? choice } };
  const name = chosenFunction(choice);
  return {
    functionCallingConfig:
      name === undefined ? { mode: "AUTO" } : { mode: "ANY", allowedFunctionNames: [name] },
  };
}

/** Returns the members of `thinkingConfig` that a preset's reasoning sets. */
function thinking(config: PresetSettings, own: JsonFields): JsonFields | undefined {
  const wish = isAbsent(own["thinkingConfig"]) ? presetEffort(config) : undefined;
  const shown =
    config.reasoning?.exclude === undefined ? {} : { includeThoughts: !config.reasoning.exclude };
  if (wish === undefined) return undefined;
  if (wish.off) return { thinkingBudget: 0 };
  if (wish.budgetTokens !== undefined) return { thinkingBudget: wish.budgetTokens, ...shown };
  return wish.effort === undefined
    ? undefined
    : { thinkingLevel: wish.effort.toUpperCase(), ...shown };
}

function format({ response_format: wanted }: PresetSettings, own: JsonFields): JsonFields {
  if (wanted === undefined || !isAbsent(own["responseMimeType"])) return {};
  const schema = asObject(asObject(wanted["json_schema"])?.["schema"]);
  if (wanted["type"] === "text") return {};
  return {
    responseMimeType: "application/json",
    ...(schema === undefined ? {} : { responseJsonSchema: schema }),
  };
}

/** Presets in Google's dialect, whose settings are members of `generationConfig`. */
export const presetFields: PresetFields = {
  settings(config, body) {
    const own = asObject(body["generationConfig"]) ?? {};
    const { tools, tool_choice: choice } = presetTools(config, body);
    const added = {
      ...unlessSet(
        {
          temperature: config.temperature,
          topP: config.top_p,
          topK: config.top_k,
          frequencyPenalty: config.frequency_penalty,
          presencePenalty: config.presence_penalty,
          seed: config.seed,
          stopSequences: typeof config.stop === "string" ? [config.stop] : config.stop,
          maxOutputTokens: outputBound(config),
          thinkingConfig: thinking(config, own),
        },
        own,
      ),
      ...format(config, own),
    };
    return {
      ...(Object.keys(added).length === 0 ? {} : { generationConfig: { ...own, ...added } }),
      ...unlessSet(
        {
          tools: tools && toolEntries(tools),
          toolConfig: choice === undefined ? undefined : toolConfig(choice),
        },
        body,
      ),
    };
  },
  lost: ({ repetition_penalty: penalty }) => (penalty === undefined ? [] : ["repetition_penalty"]),
  hasSystem: ({ systemInstruction }) => !isAbsent(systemInstruction) && systemInstruction !== "",
  systemMember: (system) => ({
    member: "systemInstruction",
    text: JSON.stringify({ parts: [{ text: system }] }),
  }),
};
