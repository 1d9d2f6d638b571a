import type { ProviderDefinition } from "../provider-definition.ts";

/** Deepgram. Source: https://deepgram.com */
export const deepgram = {
  id: "deepgram",
  name: "Deepgram",
  description: "Maker of the Nova models for transcription and of the Aura voices.",
  website: "https://deepgram.com",
  baseUrl: "https://api.deepgram.com/v1",
  credentialVariables: ["DEEPGRAM_API_KEY"],
  credentialHeader: { name: "authorization", prefix: "Token " },
  dialects: { transcriptions: "deepgram", speech: "deepgram" },
  naming: { maker: "deepgram" },
} satisfies ProviderDefinition;

/** ElevenLabs. Source: https://elevenlabs.io */
export const elevenlabs = {
  id: "elevenlabs",
  name: "ElevenLabs",
  description: "Maker of voices, and of the Scribe models for transcription.",
  website: "https://elevenlabs.io",
  baseUrl: "https://api.elevenlabs.io/v1",
  credentialVariables: ["ELEVENLABS_API_KEY", "ELEVEN_API_KEY"],
  credentialHeader: { name: "xi-api-key", prefix: "" },
  dialects: { transcriptions: "elevenlabs", speech: "elevenlabs" },
  naming: { maker: "elevenlabs" },
} satisfies ProviderDefinition;
