import type { PresetSettings } from "../../../platform/kernel/models/preset-settings.ts";
import { isAbsent, asObject } from "../shared/wire-fields.ts";
import {
  presetEffort,
  presetTools,
  saysEffort,
  unlessSet,
  type PresetFields,
} from "../shared/preset-fields.ts";
import { presetCap } from "../shared/output-cap.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/**
 * Returns the reasoning fields. Effort is flat in chat (contract: reasoning rule 1); what flat
 * fields cannot express stays in the object.
 */
function reasoning(config: PresetSettings, body: JsonFields): JsonFields {
  const own = asObject(body["reasoning"]) ?? {};
  const wish =
    isAbsent(body["reasoning_effort"]) && !saysEffort(own) ? presetEffort(config) : undefined;
  const flat = wish?.off ? "none" : wish?.effort;
  const rest = {
    ...(wish === undefined || wish.off || wish.budgetTokens === undefined
      ? {}
      : { max_tokens: wish.budgetTokens }),
    ...(config.reasoning?.exclude === undefined || !isAbsent(own["exclude"])
      ? {}
      : { exclude: config.reasoning.exclude }),
  };
  return {
    ...(flat === undefined ? {} : { reasoning_effort: flat }),
    ...(Object.keys(rest).length === 0 ? {} : { reasoning: { ...own, ...rest } }),
  };
}

const isInstruction = (message: unknown): boolean =>
  ["system", "developer"].includes(String(asObject(message)?.["role"]));

/** Presets in OpenAI's chat dialect, whose names the configuration already has. */
export const presetFields: PresetFields = {
  settings: (config, body) => ({
    ...unlessSet(
      {
        temperature: config.temperature,
        top_p: config.top_p,
        top_k: config.top_k,
        frequency_penalty: config.frequency_penalty,
        presence_penalty: config.presence_penalty,
        repetition_penalty: config.repetition_penalty,
        seed: config.seed,
        stop: config.stop,
        response_format: config.response_format,
        // OpenAI refuses stream options where there is no stream.
        stream_options: body["stream"] === true ? config.stream_options : undefined,
        ...presetTools(config, body),
        ...presetCap(config, body),
      },
      body,
    ),
    ...reasoning(config, body),
  }),
  hasSystem: ({ messages }) =>
    !Array.isArray(messages) || messages.length === 0 || messages.some(isInstruction),
  systemMember(system, textOf) {
    const messages = textOf("messages");
    if (messages === undefined) return undefined;
    const first = JSON.stringify({ role: "system", content: system });
    return { member: "messages", text: `[${first},${messages.slice(messages.indexOf("[") + 1)}` };
  },
};
