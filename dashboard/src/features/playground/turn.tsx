import { Suspense, lazy, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { TextArea } from "../../ui/fields.tsx";
import { Skeleton } from "../../ui/loaded.tsx";
import { AnswerShown } from "./answer.tsx";
import type { Turn } from "./conversation.ts";
import type { Attachment } from "./draft.ts";
import own from "./playground.module.css";

// Loaded with the first comparison: most answers are read alone.
const Differences = lazy(async () => ({
  default: (await import("./differences.tsx")).Differences,
}));

/** Shows the words in which answers of a turn differ, once two of them are there. */
function TurnDifferences({ turn: { asked, answers } }: { turn: Turn }) {
  const [isShown, setShown] = useState(false);
  const columns = asked.flatMap(({ model, columnId }) => {
    const answer = answers[columnId];
    const isThere =
      answer !== undefined &&
      answer.text !== "" &&
      (answer.state === "done" || answer.state === "stopped");
    return isThere ? [{ model, answer }] : [];
  });
  if (columns.length < 2) return null;
  return (
    <>
      <div className={own["acts"]}>
        <Button look="plain" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide the difference" : "Show the difference"}
        </Button>
      </div>
      {isShown ? (
        <Suspense fallback={<Skeleton height={160} />}>
          <Differences columns={columns} />
        </Suspense>
      ) : null}
    </>
  );
}

/** Changes a message; sending it leaves the old one with its answers as another way. */
function Editing({
  text: before,
  onSend,
  onCancel,
}: {
  text: string;
  onSend: (text: string) => void;
  onCancel: () => void;
}) {
  const [text, setText] = useState(before);
  return (
    <form
      className={own["editing"]}
      onSubmit={(event) => {
        event.preventDefault();
        onSend(text);
      }}
    >
      <TextArea
        aria-label="Edited message"
        value={text}
        required
        autoFocus
        onChange={(event) => setText(event.target.value)}
      />
      <div className={own["acts"]}>
        <Button look="plain" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit" look="plain">
          Send the change
        </Button>
      </div>
    </form>
  );
}

/** Which of several turns after the same one is shown, and the way to the others. */
function Versions({
  turn,
  versions,
  onShow,
}: {
  turn: Turn;
  versions: readonly Turn[];
  onShow: (id: number) => void;
}) {
  if (versions.length < 2) return null;
  const at = versions.findIndex(({ id }) => id === turn.id);
  const step = (by: number, label: string, sign: string) => {
    const next = versions[at + by];
    return (
      <Button
        look="plain"
        aria-label={label}
        disabled={next === undefined}
        onClick={() => next && onShow(next.id)}
      >
        {sign}
      </Button>
    );
  };
  return (
    <>
      {step(-1, "Version before", "‹")}
      <span>
        {at + 1} of {versions.length}
      </span>
      {step(1, "Next version", "›")}
    </>
  );
}

/** Something that went along with a message: pictures are seen, and sound is heard. */
function AttachmentShown({ attachment: { name, type, url } }: { attachment: Attachment }) {
  if (type.startsWith("image/")) return <img src={url} alt={name} />;
  // biome-ignore lint/a11y/useMediaCaption: a person's own recording, whose transcript is the answer.
  if (type.startsWith("audio/")) return <audio src={url} controls aria-label={name} />;
  return <span className={own["file"]}>{name}</span>;
}

/** A message of the person, and what each column answered. */
export function TurnShown({
  turn,
  number,
  versions,
  onShow,
  onAsk,
  onAttach,
}: {
  turn: Turn;
  number: number;
  versions: readonly Turn[];
  onShow: (id: number) => void;
  /** Asks in place of this turn; absent while something is under way. */
  onAsk: ((text: string) => void) | undefined;
  /** Puts a picture that was made beside the next message. */
  onAttach: (picture: Attachment) => void;
}) {
  const [isEdited, setEdited] = useState(false);
  const { text, attachments, asked, answers } = turn;
  return (
    <section aria-label={`Turn ${number}`} className={own["turn"]}>
      {isEdited ? (
        <Editing
          text={text}
          onCancel={() => setEdited(false)}
          onSend={(next) => {
            setEdited(false);
            onAsk?.(next);
          }}
        />
      ) : (
        <div className={own["question"]}>
          {attachments.map((attachment, index) => (
            <AttachmentShown key={index} attachment={attachment} />
          ))}
          {text === "" ? null : <p>{text}</p>}
        </div>
      )}
      <div className={`${own["acts"]} ${own["mine"]}`}>
        <Versions turn={turn} versions={versions} onShow={onShow} />
        {isEdited || onAsk === undefined ? null : (
          <Button look="plain" onClick={() => setEdited(true)}>
            Edit
          </Button>
        )}
      </div>
      <div className={own["answers"]} data-columns={asked.length}>
        {asked.map(({ columnId, model, body }) => (
          <AnswerShown
            key={columnId}
            model={model}
            number={number}
            answer={answers[columnId]}
            body={body}
            prompt={text}
            onAttach={onAttach}
            onRetry={onAsk === undefined ? undefined : () => onAsk(text)}
          />
        ))}
      </div>
      <TurnDifferences turn={turn} />
    </section>
  );
}
