import { parseEventObject } from "../../dialects/errors.ts";
import { betaClientEvent, gaServerEvents } from "./beta-events.ts";
import type { RealtimeUpstream, RealtimeUpstreamEvents } from "./realtime-upstream.ts";

/** Matches frames of sound, which differ in nothing but their name. */
const soundFrame =
  /^\s*\{[^{}[\]]{0,300}"type"\s*:\s*"(?:response\.audio\.delta|input_audio_buffer\.append)"/;

/** A provider that speaks the beta of OpenAI's Realtime API, in the events of GA. */
export class BetaUpstream implements RealtimeUpstream {
  constructor(private readonly socket: RealtimeUpstream) {}

  listen({ received, closed }: RealtimeUpstreamEvents): void {
    this.socket.listen({
      received(text) {
        if (soundFrame.test(text))
          return received(text.replace('"response.audio.delta"', '"response.output_audio.delta"'));
        // What is no event is left out, as in sessions of GA.
        const read = parseEventObject(text);
        for (const event of read === undefined ? [] : gaServerEvents(read))
          received(JSON.stringify(event));
      },
      closed,
    });
  }

  send(text: string): void {
    if (soundFrame.test(text)) return this.socket.send(text);
    const event = parseEventObject(text);
    // The provider says what is wrong with a frame that is no event.
    this.socket.send(event === undefined ? text : JSON.stringify(betaClientEvent(event)));
  }

  get waitingBytes(): number {
    return this.socket.waitingBytes;
  }

  close(): void {
    this.socket.close();
  }
}
