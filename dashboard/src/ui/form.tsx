import { type FormEvent, type ReactNode, type TextareaHTMLAttributes, useState } from "react";
import { Modal } from "./overlay.tsx";
import { Actions, Button, Field, Input, Problem } from "./parts.tsx";
import style from "./ui.module.css";

/** What a mutation of the query cache tells. */
interface Work {
  isPending: boolean;
  error: unknown;
}

/** Fields with one button that says what happens, and what went wrong below it. */
export function Form({
  action,
  work,
  onSubmit,
  children,
  more,
  disabled = false,
  inline = false,
  look,
}: {
  action: string;
  work: Work;
  onSubmit: () => void;
  children: ReactNode;
  more?: ReactNode;
  disabled?: boolean;
  /** Puts the button beside the field, where there is one alone. */
  inline?: boolean;
  /** The look of the button where another is the one that the page is about. */
  look?: "plain" | undefined;
}) {
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form className={inline ? style.inline : style.form} onSubmit={submit}>
      {children}
      {work.error === null || work.error === undefined ? null : <Problem error={work.error} />}
      <Actions>
        <Button type="submit" look={look} disabled={work.isPending || disabled}>
          {action}
        </Button>
        {more}
      </Actions>
    </form>
  );
}

/** Several lines of text to type. */
export function TextArea(props: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea {...props} className={style.input} />;
}

/** Something that is on or off. */
export function Check({
  label,
  checked,
  onChange,
  hint,
  disabled = false,
}: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
  disabled?: boolean;
}) {
  return (
    <label className={style.check}>
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        {label}
        {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
      </span>
    </label>
  );
}

/**
 * Asks before something that cannot be undone: names it and its effect. `typed` has to be typed
 * where it costs money.
 */
export function Confirm({
  title,
  open,
  onClose,
  onConfirm,
  action,
  work,
  children,
  typed,
}: {
  title: string;
  open: boolean;
  onClose: () => void;
  onConfirm: () => void;
  action: string;
  work: Work;
  children: ReactNode;
  typed?: string;
}) {
  const [text, setText] = useState("");
  return (
    <Modal
      title={title}
      open={open}
      onClose={() => {
        setText("");
        onClose();
      }}
    >
      {children}
      {typed === undefined ? null : (
        <Field label={`Type ${typed} to confirm`}>
          {(id) => (
            <Input
              id={id}
              value={text}
              autoComplete="off"
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
      )}
      {work.error === null || work.error === undefined ? null : <Problem error={work.error} />}
      <Actions>
        <Button
          look="danger"
          disabled={work.isPending || (typed !== undefined && text !== typed)}
          onClick={onConfirm}
        >
          {action}
        </Button>
      </Actions>
    </Modal>
  );
}

/** How much of a whole is used, as a bar with its figures in words beside it. */
export function Bar({
  label,
  share,
  marks = [],
  isProgress = false,
}: {
  label: string;
  share: number;
  marks?: readonly number[];
  /** Whether all of it is the aim, not the end of what may be used. */
  isProgress?: boolean;
}) {
  const full = isProgress ? style.barDone : style.barFull;
  const percent = Math.max(0, Math.min(100, Math.round(share * 100)));
  return (
    <svg
      className={style.bar}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${Math.round(share * 100)} % ${isProgress ? "done" : "used"}`}
    >
      <rect width="100" height="6" rx="1" className={style.barRest} />
      <rect width={percent} height="6" rx="1" className={share >= 1 ? full : style.barUsed} />
      {marks
        .filter((mark) => mark < 100)
        .map((mark) => (
          <rect key={mark} x={mark} width="0.6" height="6" className={style.barMark} />
        ))}
    </svg>
  );
}

/** Items of a list as a person types them: separated by commas or new lines. */
export const listOf = (text: string): string[] =>
  text
    .split(/[,\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** A number as typed; undefined where nothing was. */
export const numberOf = (text: string): number | undefined =>
  text.trim() === "" ? undefined : Number(text);
