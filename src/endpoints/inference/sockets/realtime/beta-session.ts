import type { RequestHeaders } from "../../../../http/served-request.ts";
import type { SocketSession } from "../../../../http/sockets/client-socket.ts";
import {
  betaServerEvent,
  gaClientEvent,
} from "../../../../inference/surfaces/realtime/beta-events.ts";
import type { RealtimeConnection, SessionClient } from "./realtime-connection.ts";
import { readRealtimeFrame } from "./realtime-events.ts";
import type { SoundConnection } from "./sound-connection.ts";

/** The subprotocol by which browsers ask for the beta. */
export const betaProtocol = "openai-beta.realtime-v1";

/** Returns whether a handshake asks for the events of OpenAI's beta. */
export const asksForBeta = (headers: RequestHeaders): boolean =>
  /(?:^|[,\s])realtime=v1(?:$|[,\s])/.test(headers.get("openai-beta") ?? "") ||
  (headers
    .get("sec-websocket-protocol")
    ?.split(/\s*,\s*/)
    .includes(betaProtocol) ??
    false);

/** The settings of a session that GA has no place for. */
export const betaLosses = "session.temperature";

/** A session whose client speaks the beta of OpenAI's Realtime API. */
export class BetaSession implements SocketSession {
  constructor(private readonly session: RealtimeConnection | SoundConnection) {}

  opened(socket: SessionClient): void {
    this.session.opened({
      send(text) {
        const shown = betaText(text);
        if (shown !== undefined) socket.send(shown);
      },
      close: (code, reason) => socket.close(code, reason),
      get unreadBytes() {
        return socket.unreadBytes;
      },
    });
  }

  received(frame: string | Uint8Array): void {
    if (typeof frame !== "string") return this.session.received(frame);
    const read = readRealtimeFrame(frame);
    this.session.received("event" in read ? JSON.stringify(gaClientEvent(read.event)) : frame);
  }

  ending(): void {
    this.session.ending();
  }

  passed(nowMs: number): void {
    this.session.passed(nowMs);
  }

  closed(): void {
    this.session.closed();
  }
}

/** Returns a frame of GA as the beta has it; undefined where it has none. */
function betaText(text: string): string | undefined {
  const read = readRealtimeFrame(text);
  // Frames of sound differ in their name alone, which comes before the sound.
  if ("soundBytes" in read)
    return text.replace('"response.output_audio.delta"', '"response.audio.delta"');
  if ("invalid" in read) return text;
  const shown = betaServerEvent(read.event);
  return shown && JSON.stringify(shown);
}
