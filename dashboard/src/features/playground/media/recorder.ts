import type { Attachment } from "../draft.ts";

/** What models of speech are trained on, and all of them take. */
const samplesPerSecond = 16_000;

/** A recording that is under way. */
export interface Recording {
  /** Ends it, and returns it as a file of sound. */
  stop(): Promise<Attachment>;
  /** Ends it, and keeps nothing. */
  cancel(): void;
}

/** Returns samples as a WAV file: PCM of 16 bits on one channel. */
function wavOf(samples: Float32Array): ArrayBuffer {
  const bytes = new ArrayBuffer(44 + samples.length * 2);
  const view = new DataView(bytes);
  const text = (at: number, value: string): void => {
    for (const [index, letter] of [...value].entries())
      view.setUint8(at + index, letter.charCodeAt(0));
  };
  text(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, samplesPerSecond, true);
  view.setUint32(28, samplesPerSecond * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, samples.length * 2, true);
  for (const [index, sample] of samples.entries())
    view.setInt16(44 + index * 2, Math.max(-1, Math.min(1, sample)) * 32_767, true);
  return bytes;
}

const urlOf = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("The recording could not be read."));
    reader.readAsDataURL(blob);
  });

/** Returns what a browser recorded, in its own format, as a WAV file that every provider takes. */
async function converted(recorded: Blob): Promise<Attachment> {
  const context = new OfflineAudioContext(1, 1, samplesPerSecond);
  const sound = await context.decodeAudioData(await recorded.arrayBuffer());
  const wav = new Blob([wavOf(sound.getChannelData(0))], { type: "audio/wav" });
  return { name: "recording.wav", type: "audio/wav", url: await urlOf(wav) };
}

/** Begins to record from the microphone. Throws with the reason where the browser does not allow it. */
export async function record(): Promise<Recording> {
  // Browsers offer the microphone to pages of https and of this machine alone.
  const devices = (navigator as { mediaDevices?: MediaDevices }).mediaDevices;
  if (devices === undefined)
    throw new Error(
      "Browsers offer the microphone to https addresses only. Attach a file instead.",
    );
  const stream = await devices.getUserMedia({ audio: true }).catch((error: unknown) => {
    throw new Error(
      "The browser did not open the microphone. Allow it for this page, or attach a file instead.",
      { cause: error },
    );
  });
  const recorder = new MediaRecorder(stream);
  const pieces: Blob[] = [];
  recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
  recorder.start();
  const release = (): void => {
    for (const track of stream.getTracks()) track.stop();
  };
  return {
    async stop() {
      const stopped = new Promise((resolve) => recorder.addEventListener("stop", resolve));
      recorder.stop();
      await stopped;
      release();
      return converted(new Blob(pieces, { type: recorder.mimeType }));
    },
    cancel: () => {
      recorder.stop();
      release();
    },
  };
}
