import { type KeyboardEvent, Suspense, lazy, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { AttachButton, Attached, readFiles } from "./attachments.tsx";
import type { Attachment, MediaKind } from "./draft.ts";
import own from "./playground.module.css";

// Loaded with the first model that takes sound.
const RecordButton = lazy(async () => ({
  default: (await import("./media/record-button.tsx")).RecordButton,
}));

const placeholders: Record<MediaKind | "chat", string> = {
  chat: "Ask something",
  picture: "Describe a picture, or attach one and say what is to change",
  speech: "Write what is to be spoken",
  transcript: "Record or attach a sound. Optional: names and words in it",
};

/** Where fingers type, Enter begins a line: there is a button to send. */
const hasKeyboard = (): boolean => !matchMedia("(pointer: coarse)").matches;

const sends = ({ key, shiftKey, ctrlKey, metaKey, nativeEvent }: KeyboardEvent): boolean =>
  key === "Enter" &&
  !nativeEvent.isComposing &&
  (ctrlKey || metaKey || (!shiftKey && hasKeyboard()));

/** Where messages are written: below what was said, always in sight. */
export function Composer({
  prompt,
  onPrompt,
  attachments,
  onAttachments,
  isBusy,
  mayAsk,
  kind,
  hears,
  onSend,
  onStop,
}: {
  prompt: string;
  onPrompt: (text: string) => void;
  attachments: readonly Attachment[];
  onAttachments: (files: readonly Attachment[]) => void;
  isBusy: boolean;
  mayAsk: boolean;
  /** What the models make; undefined where they chat. */
  kind: MediaKind | undefined;
  /** Whether one of the models takes sound. */
  hears: boolean;
  onSend: () => void;
  onStop: () => void;
}) {
  const [problem, setProblem] = useState<string>();
  const add = (files: readonly File[]): void => {
    if (files.length === 0) return;
    setProblem(undefined);
    readFiles(files).then(
      (read) => onAttachments([...attachments, ...read]),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  };
  const hasSound = attachments.some(({ type }) => type.startsWith("audio/"));
  const isComplete = kind === "transcript" ? hasSound : prompt.trim() !== "";
  const send = (): void => {
    if (!isBusy && mayAsk && isComplete) onSend();
  };
  return (
    <form
      className={own["composer"]}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add([...event.dataTransfer.files]);
      }}
    >
      <Attached files={attachments} onChange={onAttachments} />
      {problem === undefined ? null : <span role="alert">{problem}</span>}
      <textarea
        aria-label="Message"
        placeholder={placeholders[kind ?? "chat"]}
        rows={1}
        value={prompt}
        onChange={(event) => onPrompt(event.target.value)}
        onPaste={(event) => add([...event.clipboardData.files])}
        onKeyDown={(event) => {
          if (!sends(event)) return;
          event.preventDefault();
          send();
        }}
      />
      <div className={own["sending"]}>
        <AttachButton hears={hears} onFiles={add} />
        {hears ? (
          <Suspense fallback={null}>
            <RecordButton
              onRecorded={(sound) => onAttachments([...attachments, sound])}
              onProblem={setProblem}
            />
          </Suspense>
        ) : null}
        <span className={own["keys"]}>Enter sends, Shift and Enter begins a new line.</span>
        {isBusy ? (
          <Button look="plain" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" disabled={!mayAsk || !isComplete}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}
