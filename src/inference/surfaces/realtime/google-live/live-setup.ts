import { asObject } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";

/** A setting or event of OpenAI's Realtime API that Gemini Live has no counterpart for. */
export interface LiveLoss {
  param: string;
  message: string;
}

/** The member of a session that decides whether the provider or the client ends a turn. */
const isManual = (session: Fields): boolean =>
  asObject(asObject(session["audio"])?.["input"])?.["turn_detection"] === null;

/** Returns whether the client of a session ends its own turns (`turn_detection: null`). */
export const endsOwnTurns = isManual;

/** Returns whether a session is answered in sound. */
export const speaks = ({ output_modalities: modalities }: Fields): boolean =>
  !Array.isArray(modalities) || modalities.includes("audio");

/** Members of a session that Gemini Live has no counterpart for. */
const lostMembers = ["prompt", "tracing", "truncation", "include", "reasoning", "tool_choice"];

/** Returns the settings of a session that are lost. */
export function lossesOf(session: Fields): LiveLoss[] {
  const losses = lostMembers
    .filter((name) => session[name] !== undefined && session[name] !== "auto")
    .map((name): LiveLoss => lost(`session.${name}`));
  const { input, output } = asObject(session["audio"]) ?? {};
  for (const [name, side] of Object.entries({ input, output })) {
    const type = asObject(asObject(side)?.["format"])?.["type"];
    if (type !== undefined && type !== "audio/pcm")
      losses.push(lost(`session.audio.${name}.format`, "sound is PCM of 24 kHz"));
  }
  if (asObject(asObject(input)?.["noise_reduction"]) !== undefined)
    losses.push(lost("session.audio.input.noise_reduction"));
  if (asObject(output)?.["speed"] !== undefined) losses.push(lost("session.audio.output.speed"));
  const tools = Array.isArray(session["tools"]) ? session["tools"] : [];
  if (tools.some((tool: unknown) => asObject(tool)?.["type"] !== "function"))
    losses.push(lost("session.tools", "only functions are taken"));
  return losses;
}

/** Returns the loss of a member or event. */
export const lost = (param: string, why = "it has no counterpart"): LiveLoss => ({
  param,
  message: `${param}: Gemini Live does not take this (${why}); it is left out.`,
});

/** Returns how the provider hears the end of a turn. */
function activityOf(session: Fields): Record<string, unknown> {
  if (isManual(session)) return { automaticActivityDetection: { disabled: true } };
  const detection = asObject(asObject(asObject(session["audio"])?.["input"])?.["turn_detection"]);
  const { prefix_padding_ms: prefixPaddingMs, silence_duration_ms: silenceDurationMs } =
    detection ?? {};
  return {
    automaticActivityDetection: {
      ...(typeof prefixPaddingMs === "number" && { prefixPaddingMs }),
      ...(typeof silenceDurationMs === "number" && { silenceDurationMs }),
    },
    ...(detection?.["interrupt_response"] === false && { activityHandling: "NO_INTERRUPTION" }),
  };
}

/** Returns the declaration of a function. */
function declarationOf(tool: unknown): Record<string, unknown>[] {
  const { type, name, description, parameters } = asObject(tool) ?? {};
  if (type !== "function") return [];
  return [
    {
      name,
      ...(typeof description === "string" && { description }),
      ...(asObject(parameters) !== undefined && { parametersJsonSchema: parameters }),
    },
  ];
}

/** Returns the first frame of a session at Gemini Live, which settles it for good. */
export function liveSetup(model: string, session: Fields): Record<string, unknown> {
  const { instructions, max_output_tokens: cap, tools } = session;
  const hasSound = speaks(session);
  const voice = asObject(asObject(session["audio"])?.["output"])?.["voice"];
  const functionDeclarations = Array.isArray(tools) ? tools.flatMap(declarationOf) : [];
  return {
    setup: {
      model: model.startsWith("models/") ? model : `models/${model}`,
      generationConfig: {
        responseModalities: [hasSound ? "AUDIO" : "TEXT"],
        ...(typeof cap === "number" && { maxOutputTokens: cap }),
        ...(hasSound &&
          typeof voice === "string" && {
            speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } },
          }),
      },
      ...(typeof instructions === "string" && {
        systemInstruction: { parts: [{ text: instructions }] },
      }),
      ...(functionDeclarations.length > 0 && { tools: [{ functionDeclarations }] }),
      realtimeInputConfig: activityOf(session),
      ...(hasSound && { outputAudioTranscription: {} }),
    },
  };
}
