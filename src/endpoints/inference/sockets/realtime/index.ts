import type { Endpoint } from "../../../../http/endpoint.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { createLiveSession, createRealtimeCall, openLiveSession } from "./not-offered.ts";
import { realtime, realtimeTranslations } from "./realtime.ts";
import {
  createClientSecret,
  createRealtimeSession,
  createTranscriptionSession,
  createTranslationSecret,
} from "./realtime-secrets.ts";

/** The endpoints of OpenAI's Realtime API. */
export const realtimeEndpoints: readonly Endpoint<Dependencies>[] = [
  realtime,
  realtimeTranslations,
  createClientSecret,
  createRealtimeSession,
  createTranslationSecret,
  createTranscriptionSession,
  createRealtimeCall,
  createLiveSession,
  openLiveSession,
];
