import { expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey } from "../../support/gateway.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";

const missing = missingPackage("python", "openai");

test.skipIf(missing !== undefined)(
  `OpenAI's client of Python makes and changes pictures, transcribes, translates and speaks${missing ? ` (missing: ${missing})` : ""}`,
  async () => {
    const gateway = await startGateway({ sandbox: true });
    try {
      const script = join(import.meta.dir, "media.py");
      const parameters = [gateway.origin, testLlmKey];
      expect(await runScript(script, { group: "python", parameters })).toEqual({
        made: "PNG",
        streamed: "image_generation.completed",
        edited: "PNG",
        edit_streamed: "image_edit.completed",
        varied: 1,
        spoken: "RIFF",
        transcribed: true,
        srt: true,
        transcript: "transcript.text.done",
        translated: true,
        translation_timed: true,
      });
    } finally {
      await gateway.stop();
    }
  },
  240_000,
);
