import {
  type InputHTMLAttributes,
  type ReactNode,
  type TextareaHTMLAttributes,
  createContext,
  useContext,
  useId,
  useLayoutEffect,
} from "react";
import type { ApiError } from "../lib/api.ts";
import style from "./ui.module.css";

/** What the API refused in the form around, until a field has shown it. */
export interface Refusal {
  error: ApiError | undefined;
  onShown: (error: ApiError) => void;
}
export const Refused = createContext<Refusal>({ error: undefined, onShown: () => undefined });

/** What a refusal says after the name of the field, under which it stands. */
const withoutName = (message: string): string => {
  const text = message.replace(/^[\w.[\]]+: /, "");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
};

/** Brings a field into sight of which the API refused what it sent, and gives the reason. */
function useRefusal(id: string, param: string | undefined): string | undefined {
  const { error, onShown } = useContext(Refused);
  const own = param !== undefined && error?.param?.split(/[.[]/)[0] === param ? error : undefined;
  // Before the browser paints: the form does not show the refusal above its button as well.
  useLayoutEffect(() => {
    const input = document.getElementById(id);
    if (own === undefined || input === null) return;
    onShown(own);
    input.closest("details")?.setAttribute("open", "");
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", `${id}-refusal`);
    input.focus();
    return () => {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    };
  }, [id, own, onShown]);
  return own && withoutName(own.message);
}

/** A field with its label and what to know about it. */
export function Field({
  label,
  hint,
  param,
  children,
}: {
  label: string;
  hint?: string;
  /** The field of the API that it sets: a refusal of that stands here. */
  param?: string;
  children: (id: string) => ReactNode;
}) {
  const id = useId();
  const refusal = useRefusal(id, param);
  return (
    <div className={style.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {refusal === undefined ? null : (
        <span id={`${id}-refusal`} className={style.refusal} role="alert">
          {refusal}
        </span>
      )}
      {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
    </div>
  );
}

/** A line of text to type. */
export function Input(props: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...props} className={style.input} />;
}

/** Several lines of text to type. */
export function TextArea(props: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea {...props} className={style.input} />;
}

/** A choice of a few. */
export function Select<Value extends string>({
  id,
  value,
  onChange,
  options,
  label,
}: {
  id?: string;
  value: Value;
  onChange: (value: Value) => void;
  options: readonly (readonly [Value, string])[];
  label?: string;
}) {
  const choose = (text: string): void => {
    const chosen = options.find(([key]) => key === text);
    if (chosen !== undefined) onChange(chosen[0]);
  };
  return (
    <select
      id={id}
      aria-label={label}
      className={style.input}
      value={value}
      onChange={(event) => choose(event.target.value)}
    >
      {options.map(([key, text]) => (
        <option key={key} value={key}>
          {text}
        </option>
      ))}
    </select>
  );
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
        className={style.box}
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

/** Items of a list as a person types them: separated by commas or new lines. */
export const listOf = (text: string): string[] =>
  text
    .split(/[,\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** A number as typed; undefined where nothing was. */
export const numberOf = (text: string): number | undefined =>
  text.trim() === "" ? undefined : Number(text);
