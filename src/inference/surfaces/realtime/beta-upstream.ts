import { asObject } from "../../dialects/shared/wire-fields.ts";
import { betaClientEvent, gaServerEvents } from "./beta-events.ts";
import type { RealtimeUpstream, RealtimeUpstreamEvents } from "./realtime-upstream.ts";

/** Matches frames of sound, which differ in nothing but their name. */
const soundFrame =
  /^\s*\{[^{}[\]]{0,300}"type"\s*:\s*"(?:response\.audio\.delta|input_audio_buffer\.append)"/;

/** A provider that speaks the beta of OpenAI's Realtime API, in the events of GA. */
export class BetaUpstream implements RealtimeUpstream {
  private readonly socket: RealtimeUpstream;

  constructor(socket: RealtimeUpstream) {
    this.socket = socket;
  }

  listen({ received, closed }: RealtimeUpstreamEvents): void {
    this.socket.listen({
      received(text) {
        if (soundFrame.test(text))
          return received(text.replace('"response.audio.delta"', '"response.output_audio.delta"'));
        for (const event of gaServerEvents(asObject(JSON.parse(text)) ?? {}))
          received(JSON.stringify(event));
      },
      closed,
    });
  }

  send(text: string): void {
    if (soundFrame.test(text)) return this.socket.send(text);
    this.socket.send(JSON.stringify(betaClientEvent(asObject(JSON.parse(text)) ?? {})));
  }

  get waitingBytes(): number {
    return this.socket.waitingBytes;
  }

  close(): void {
    this.socket.close();
  }
}
