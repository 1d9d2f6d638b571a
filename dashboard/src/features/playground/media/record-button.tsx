import { useEffect, useRef, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import type { Attachment } from "../draft.ts";
import own from "../playground.module.css";
import type { Recording } from "./recorder.ts";

/** The seconds since a recording began. */
function useSeconds(startedMs: number | undefined): number {
  const [nowMs, setNowMs] = useState(0);
  useEffect(() => {
    if (startedMs === undefined) return undefined;
    const timer = setInterval(() => setNowMs(performance.now()), 1_000);
    return () => clearInterval(timer);
  }, [startedMs]);
  return startedMs === undefined ? 0 : Math.max(0, Math.round((nowMs - startedMs) / 1_000));
}

/** Minutes and seconds, such as 1:05. */
const clockOf = (seconds: number): string =>
  `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

/** Records from the microphone, until it is pressed again. */
export function RecordButton({
  onRecorded,
  onProblem,
}: {
  onRecorded: (sound: Attachment) => void;
  onProblem: (message: string | undefined) => void;
}) {
  const recording = useRef<Recording>(null);
  const [startedMs, setStartedMs] = useState<number>();
  const seconds = useSeconds(startedMs);
  useEffect(
    () => () => {
      recording.current?.cancel();
    },
    [],
  );
  const tell = (error: unknown): void =>
    onProblem(error instanceof Error ? error.message : String(error));
  const begin = async (): Promise<void> => {
    onProblem(undefined);
    const { record } = await import("./recorder.ts");
    recording.current = await record();
    setStartedMs(performance.now());
  };
  const end = async (): Promise<void> => {
    const under = recording.current;
    recording.current = null;
    setStartedMs(undefined);
    if (under !== null) onRecorded(await under.stop());
  };
  if (startedMs === undefined)
    return (
      <Button look="plain" onClick={() => void begin().catch(tell)}>
        Record
      </Button>
    );
  return (
    <>
      <Button look="plain" onClick={() => void end().catch(tell)}>
        <span className={own["recording"]} aria-hidden="true" />
        Stop recording
      </Button>
      <span className={own["recorded"]}>{clockOf(seconds)}</span>
    </>
  );
}
