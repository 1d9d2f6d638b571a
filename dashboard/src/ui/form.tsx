import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { ApiError } from "../lib/api.ts";
import { Actions, Button } from "./button.tsx";
import { Field, Input, Refused } from "./fields.tsx";
import { Problem } from "./loaded.tsx";
import { Cancel, Modal } from "./overlay.tsx";
import style from "./ui.module.css";

/** What a mutation of the query cache tells. */
interface Work {
  isPending: boolean;
  error: unknown;
}

/**
 * Fields with one button that says what happens. What went wrong stands at the field that it is
 * about, or else above the button.
 */
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
  const refused = work.error instanceof ApiError ? work.error : undefined;
  const [shown, setShown] = useState<ApiError>();
  const refusal = useMemo(() => ({ error: refused, onShown: setShown }), [refused]);
  const isShown = refused !== undefined && refused === shown;
  return (
    <form className={inline ? style.inline : style.form} onSubmit={submit}>
      <Refused value={refusal}>{children}</Refused>
      {work.error === null || work.error === undefined || isShown ? null : (
        <Problem error={work.error} />
      )}
      <Actions>
        {inline ? null : <Cancel />}
        <Button type="submit" look={look} disabled={work.isPending || disabled}>
          {action}
        </Button>
        {more}
      </Actions>
    </form>
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
  without,
}: {
  title: string;
  open: boolean;
  onClose: () => void;
  onConfirm: () => void;
  action: string;
  work: Work;
  children: ReactNode;
  typed?: string;
  /** What the button without the action says, where "Cancel" would be what it asks about. */
  without?: string;
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
        <Cancel label={without} />
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
